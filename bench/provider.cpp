// Cycles per byte of AES through EVP, for `mpisec bench provider` (bench/mpisec_bench/provider.py). The contestants are
// processes of this program that take turns: each waits for a line "MODE KEYBITS BYTES DIRECTION SECONDS" and answers with
// the cycles per byte of that. The mode "cbc16" encrypts 16 buffers in jobs of ASYNC at once.
//
//   provider DIRECTORY-OF-MODULES MODULE     "default", or "libmpisec-provider" found in the directory
#include <openssl/async.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <x86intrin.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int jobs_at_once = 16;
constexpr int calls_per_look = 8;
const unsigned char key[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, iv[16] = {1};

/// One cipher, ready: the schedule of the key is not measured, as in no measurement of a cipher.
struct Contestant {
    EVP_CIPHER* cipher = nullptr;
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    std::vector<unsigned char> from, to;
    bool aead = false;

    Contestant(OSSL_LIB_CTX* library, const std::string& name, std::size_t n, bool encrypt)
        : cipher(EVP_CIPHER_fetch(library, name.c_str(), nullptr)), from(n, 7), to(n + 32) {
        if (!cipher) return;
        aead = (EVP_CIPHER_get_flags(cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0;
        EVP_CipherInit_ex2(context, cipher, key, iv, encrypt ? 1 : 0, nullptr);
        EVP_CIPHER_CTX_set_padding(context, 0);
    }
    Contestant(const Contestant&) = delete;
    ~Contestant() {
        EVP_CIPHER_CTX_free(context);
        EVP_CIPHER_free(cipher);
    }
    void call() {
        int n = 0;
        if (aead) {  // a message: vector, text, tag
            EVP_CipherInit_ex2(context, nullptr, nullptr, iv, -1, nullptr);
            unsigned char tag[16] = {};
            if (!EVP_CIPHER_CTX_is_encrypting(context))
                EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag);
            EVP_CipherUpdate(context, to.data(), &n, from.data(), static_cast<int>(from.size()));
            EVP_CipherFinal_ex(context, tag, &n);
            return;
        }
        EVP_CipherUpdate(context, to.data(), &n, from.data(), static_cast<int>(from.size()));
    }
};

int job(void* argument) {
    (*static_cast<Contestant**>(argument))->call();
    return 1;
}

/// Every contestant's call, in jobs that may be paused.
void call_in_jobs(std::vector<Contestant*>& all, std::vector<ASYNC_WAIT_CTX*>& waits) {
    ASYNC_JOB* running[jobs_at_once] = {};
    bool done[jobs_at_once] = {};
    for (int left = static_cast<int>(all.size()); left > 0;)
        for (std::size_t i = 0; i < all.size(); ++i) {
            int result = 0;
            if (!done[i] &&
                ASYNC_start_job(&running[i], waits[i], &result, job, &all[i], sizeof all[i]) == ASYNC_FINISH)
                done[i] = true, --left;
        }
}

/// Cycles per byte: the best of the looks of some calls each, which what else the machine does disturbs least.
template <class Call>
double measure(double seconds, double bytes_per_call, Call call) {
    call();
    double best = 0;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    do {
        const unsigned long long begin = __rdtsc();
        for (int i = 0; i < calls_per_look; ++i) call();
        const double cycles = static_cast<double>(__rdtsc() - begin) / calls_per_look / bytes_per_call;
        if (best == 0 || cycles < best) best = cycles;
    } while (Clock::now() < end);
    return best;
}

double answer(OSSL_LIB_CTX* library, const std::string& mode, int bits, std::size_t n, bool encrypt,
              double seconds) {
    const bool many = mode == "cbc16";
    const std::string name =
        mode == "chacha" ? "ChaCha20-Poly1305" : "AES-" + std::to_string(bits) + "-" + (many ? "cbc" : mode);
    if (!many) {
        Contestant one(library, name, n, encrypt);
        return one.cipher ? measure(seconds, static_cast<double>(n), [&] { one.call(); }) : 0;
    }
    std::vector<Contestant*> all;
    std::vector<ASYNC_WAIT_CTX*> waits;
    for (int i = 0; i < jobs_at_once; ++i) {
        all.push_back(new Contestant(library, name, n, true));
        waits.push_back(ASYNC_WAIT_CTX_new());
    }
    const double cycles = !all[0]->cipher ? 0 : measure(seconds, static_cast<double>(n) * jobs_at_once, [&] {
        call_in_jobs(all, waits);
    });
    for (Contestant* one : all) delete one;
    for (ASYNC_WAIT_CTX* wait : waits) ASYNC_WAIT_CTX_free(wait);
    return cycles;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    OSSL_LIB_CTX* library = OSSL_LIB_CTX_new();
    OSSL_PROVIDER_set_default_search_path(library, arguments[1]);
    // OpenSSL's own beside it, for what it does not offer.
    const bool loaded = OSSL_PROVIDER_load(library, arguments[2]) && OSSL_PROVIDER_load(library, "default");
    if (!loaded || EVP_set_default_properties(library, "?provider=mpisec") != 1) {
        std::fprintf(stderr, "OpenSSL cannot load %s from %s\n", arguments[2], arguments[1]);
        return 1;
    }
    ASYNC_init_thread(jobs_at_once, jobs_at_once);
    char mode[16];
    for (int bits, encrypt;;) {
        std::size_t n = 0;
        double seconds = 0;
        if (std::scanf("%15s %d %zu %d %lf", mode, &bits, &n, &encrypt, &seconds) != 5) return 0;
        std::printf("%.6f\n", answer(library, mode, bits, n, encrypt != 0, seconds));
        std::fflush(stdout);
    }
}
