// What programs do with EVP beyond plain encryption: records of TLS, jobs of ASYNC, fork, threads, wrong arguments.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/async.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <thread>

#include "support.hpp"

namespace mpisec::provider::test {
namespace {

const Bytes key(64, 7), iv(16, 9);

int last_reason() {
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    EXPECT_EQ(ERR_GET_LIB(ERR_peek_last_error()), ERR_LIB_PROV);
    ERR_clear_error();
    return reason;
}

// --- TLS 1.2 with AES-GCM: RFC 5288, as libssl does it.

struct TlsEnd {
    TlsEnd(OSSL_LIB_CTX* library, bool encrypt) {
        const EVP_CIPHER* cipher = fetch(library, "AES-128-GCM");
        EXPECT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), nullptr, encrypt, nullptr), 1);
        std::uint8_t fixed[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_IV_FIXED, -1, fixed), 1);
    }
    /// The number of bytes that libssl is told; the record is `buffer` then.
    int record(Bytes& buffer, std::uint8_t number) {
        std::uint8_t ad[13] = {0, 0, 0, 0, 0, 0, 0, number, 23, 3, 3};
        ad[11] = static_cast<std::uint8_t>(buffer.size() >> 8),
        ad[12] = static_cast<std::uint8_t>(buffer.size());
        const std::size_t n = buffer.size();
        EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_TLS1_AAD, sizeof ad, ad), 16);
        buffer.resize(n + (EVP_CIPHER_CTX_is_encrypting(context) ? 16 : 0));
        return EVP_Cipher(context, buffer.data(), buffer.data(), static_cast<unsigned>(buffer.size()));
    }
    Cipher context;
};

TEST(ProviderCalls, RecordsOfTls12AreTheSame) {
    TlsEnd mine(ours(), true), theirs(openssl(), true), opening(ours(), false),
        their_opening(openssl(), false);
    for (std::uint8_t i = 0; i < 5; ++i) {
        Bytes plain(8 + 1000u * i + 1, i), first = plain, second = plain;
        ASSERT_EQ(mine.record(first, i), theirs.record(second, i));
        ASSERT_EQ(first, second) << int{i};
        ASSERT_EQ(opening.record(first, i), their_opening.record(second, i));
        first.resize(plain.size());
        EXPECT_TRUE(std::equal(plain.begin() + 8, plain.end(), first.begin() + 8));
    }
}

TEST(ProviderCalls, AChangedRecordIsRefusedAndWiped) {
    TlsEnd sealing(ours(), true), opening(ours(), false);
    Bytes record(8 + 100, 5);
    ASSERT_GT(sealing.record(record, 0), 0);
    record[20] ^= 1;
    EXPECT_LE(opening.record(record, 0), 0);
    EXPECT_EQ(Bytes(record.begin() + 8, record.begin() + 108), Bytes(100, 0));
}

/// TLS 1.2 with ChaCha20-Poly1305 (RFC 7905): the number of the record goes into the vector.
TEST(ProviderCalls, RecordsWithChachaAreTheSame) {
    Cipher ends[4];  // sealing, opening: ours, OpenSSL's
    for (std::size_t i = 0; i < 4; ++i)
        ASSERT_EQ(EVP_CipherInit_ex2(ends[i], fetch(i % 2 ? openssl() : ours(), "ChaCha20-Poly1305"),
                                     key.data(), iv.data(), i < 2, nullptr),
                  1);
    for (std::uint8_t number = 0; number < 5; ++number) {
        const Bytes plain(1000u * number + 3, number);
        Bytes records[2] = {plain, plain};
        for (std::size_t i = 0; i < 4; ++i) {
            Bytes& record = records[i % 2];
            std::uint8_t ad[13] = {0, 0, 0, 0, 0, 0, 0, number, 23, 3, 3};
            ad[11] = static_cast<std::uint8_t>(record.size() >> 8),
            ad[12] = static_cast<std::uint8_t>(record.size());
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(ends[i], EVP_CTRL_AEAD_TLS1_AAD, sizeof ad, ad), 16);
            if (i < 2) record.resize(record.size() + 16);
            if (i == 0) ends[0].become_copy();
            ASSERT_GT(EVP_Cipher(ends[i], record.data(), record.data(), static_cast<unsigned>(record.size())),
                      0);
            if (i == 1) {
                ASSERT_EQ(records[0], records[1]) << int{number};
            }
        }
        for (const Bytes& record : records)
            EXPECT_TRUE(std::equal(plain.begin(), plain.end(), record.begin()));
        records[0].resize(0);
    }
}

/// What OpenSSL lets pass: a second message under the same vector, and any message whose tag was not told.
TEST(ProviderCalls, ChachaNeedsANewVectorAndATag) {
    const EVP_CIPHER* cipher = fetch(ours(), "ChaCha20-Poly1305");
    Cipher sealing, opening, without;
    Bytes out(16);
    int n = 0;
    ASSERT_EQ(EVP_CipherInit_ex2(sealing, cipher, key.data(), iv.data(), 1, nullptr), 1);
    ASSERT_EQ(EVP_CipherUpdate(sealing, out.data(), &n, iv.data(), 16), 1);
    ASSERT_EQ(EVP_CipherFinal_ex(sealing, out.data(), &n), 1);
    EXPECT_NE(EVP_CipherUpdate(sealing, out.data(), &n, iv.data(), 16), 1);
    ASSERT_EQ(EVP_CipherInit_ex2(opening, cipher, key.data(), iv.data(), 0, nullptr), 1);
    ASSERT_EQ(EVP_CipherUpdate(opening, out.data(), &n, iv.data(), 16), 1);
    EXPECT_NE(EVP_CipherFinal_ex(opening, out.data(), &n), 1);
    ASSERT_EQ(EVP_CipherInit_ex2(without, cipher, key.data(), nullptr, 1, nullptr), 1);
    EXPECT_NE(EVP_CipherUpdate(without, out.data(), &n, iv.data(), 16), 1);
    ERR_clear_error();
}

/// As Node.js does before every message.
TEST(ProviderCalls, ChachaTakesTheLengthOfATagAlone) {
    Bytes tags[2];
    for (OSSL_LIB_CTX* library : {openssl(), ours()}) {
        Cipher context;
        Bytes out(16), tag(12);
        int n = 0;
        ASSERT_EQ(EVP_CipherInit_ex2(context, fetch(library, "ChaCha20-Poly1305"), key.data(), iv.data(), 1,
                                     nullptr),
                  1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 12, nullptr), 1);
        EXPECT_EQ(EVP_CIPHER_CTX_get_tag_length(context), 12);
        EXPECT_NE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 17, nullptr), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 16), 1);
        ASSERT_EQ(EVP_CipherFinal_ex(context, out.data(), &n), 1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 12, tag.data()), 1);
        tags[library == ours()] = tag;
        Cipher opening;
        ASSERT_EQ(EVP_CipherInit_ex2(opening, fetch(library, "ChaCha20-Poly1305"), key.data(), iv.data(), 0,
                                     nullptr),
                  1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, 12, nullptr), 1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, 12, tag.data()), 1);
        ASSERT_EQ(EVP_CipherUpdate(opening, out.data(), &n, out.data(), 16), 1);
        EXPECT_EQ(EVP_CipherFinal_ex(opening, out.data(), &n), 1);
        EXPECT_EQ(out, Bytes(iv.begin(), iv.end()));
    }
    EXPECT_EQ(tags[0], tags[1]);
    ERR_clear_error();
}

/// No library has begun a message of that direction, so it would be encrypted under no vector in particular.
TEST(ProviderCalls, AMessageDoesNotTurnRound) {
    for (const char* name : {"AES-256-GCM", "ChaCha20-Poly1305"}) {
        Cipher context;
        Bytes out(16);
        int n = 0;
        ASSERT_EQ(EVP_CipherInit_ex2(context, fetch(ours(), name), key.data(), iv.data(), 0, nullptr), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 16), 1);
        ASSERT_EQ(EVP_CipherInit_ex2(context, nullptr, nullptr, nullptr, 1, nullptr), 1);
        EXPECT_NE(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 16), 1) << name;
    }
    ERR_clear_error();
}

/// The padding and MAC of CBC suites, which the provider leaves to OpenSSL.
TEST(ProviderCalls, RecordsOfTlsWithCbcAreOpenssls) {
    Bytes results[2];
    for (int i = 0; i < 2; ++i) {
        Cipher context;
        const EVP_CIPHER* cipher = fetch(i ? ours() : openssl(), "AES-128-CBC");
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), 1, nullptr), 1);
        unsigned tls_version = 0x0303;
        std::size_t mac_n = 20;
        const OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &tls_version),
            OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &mac_n), OSSL_PARAM_construct_end()};
        ASSERT_EQ(EVP_CIPHER_CTX_set_params(context, parameters), 1);
        results[i].assign(200, 3);
        int n = 0;
        ASSERT_EQ(EVP_CipherUpdate(context, results[i].data(), &n, results[i].data(), 150), 1);
        results[i].resize(static_cast<std::size_t>(n));
    }
    EXPECT_EQ(results[0].size(), 160u);
    EXPECT_EQ(results[0], results[1]);
}

/// AES-GCM as OpenSSH does it: the vector counts on inside the context, the length of the packet is associated data.
TEST(ProviderCalls, PacketsOfOpensshAreTheSame) {
    Bytes sent[2];
    for (int i = 0; i < 2; ++i) {
        Cipher sealing, opening;
        const EVP_CIPHER* cipher = fetch(i ? ours() : openssl(), "AES-256-GCM");
        std::uint8_t first[12] = {9, 8, 7, 6, 5, 4, 3, 2, 255, 255, 255, 254};
        for (EVP_CIPHER_CTX* end :
             {static_cast<EVP_CIPHER_CTX*>(sealing), static_cast<EVP_CIPHER_CTX*>(opening)}) {
            ASSERT_EQ(EVP_CipherInit_ex2(end, cipher, nullptr, nullptr, end == sealing, nullptr), 1);
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(end, EVP_CTRL_GCM_SET_IV_FIXED, -1, first), 1);
            ASSERT_EQ(EVP_CipherInit_ex2(end, nullptr, key.data(), nullptr, -1, nullptr), 1);
        }
        for (std::uint8_t packet = 0; packet < 4; ++packet) {
            Bytes plain(16 + 64 * packet, packet), sealed(plain.size()), opened(plain.size()), tag(16);
            std::uint8_t length[4] = {0, 0, 0, packet}, last = 0;
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_GCM_IV_GEN, 1, &last), 1);
            ASSERT_GE(EVP_Cipher(sealing, nullptr, length, 4), 0);
            ASSERT_GE(EVP_Cipher(sealing, sealed.data(), plain.data(), static_cast<unsigned>(plain.size())),
                      0);
            ASSERT_GE(EVP_Cipher(sealing, nullptr, nullptr, 0), 0);
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_GCM_GET_TAG, 16, tag.data()), 1);
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_GCM_IV_GEN, 1, &last), 1);
            ASSERT_EQ(EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_GCM_SET_TAG, 16, tag.data()), 1);
            ASSERT_GE(EVP_Cipher(opening, nullptr, length, 4), 0);
            ASSERT_GE(EVP_Cipher(opening, opened.data(), sealed.data(), static_cast<unsigned>(plain.size())),
                      0);
            ASSERT_GE(EVP_Cipher(opening, nullptr, nullptr, 0), 0) << "packet " << int{packet};
            EXPECT_EQ(opened, plain);
            sent[i].insert(sent[i].end(), sealed.begin(), sealed.end());
            sent[i].insert(sent[i].end(), tag.begin(), tag.end());
        }
    }
    EXPECT_EQ(sent[0], sent[1]);
}

// --- ASYNC jobs: many buffers of CBC encryption at once.

struct Job {
    const EVP_CIPHER* cipher;
    Bytes in, out;
    bool padding;
};

int encrypt_job(void* argument) {
    Job& job = **static_cast<Job**>(argument);
    job.out = crypt(job.cipher, true, key, iv, job.in, job.padding);
    return 1;
}

void run_jobs(std::vector<Job>& jobs) {
    std::vector<ASYNC_JOB*> running(jobs.size());
    std::vector<bool> done(jobs.size());
    std::vector<ASYNC_WAIT_CTX*> waits;
    for (std::size_t i = 0; i < jobs.size(); ++i) waits.push_back(ASYNC_WAIT_CTX_new());
    std::size_t finished = 0, paused = 0;
    while (finished < jobs.size())
        for (std::size_t i = 0; i < jobs.size(); ++i) {
            if (done[i]) continue;
            int result = 0;
            Job* job = &jobs[i];
            // NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer is what the job gets a copy of
            const int state = ASYNC_start_job(&running[i], waits[i], &result, encrypt_job, &job, sizeof job);
            ASSERT_TRUE(state == ASYNC_FINISH || state == ASYNC_PAUSE);
            if (state == ASYNC_FINISH) done[i] = true, ++finished;
            if (state == ASYNC_PAUSE) {
                ++paused;
                std::size_t descriptors = 0;
                ASSERT_EQ(ASYNC_WAIT_CTX_get_all_fds(waits[i], nullptr, &descriptors), 1);
                EXPECT_EQ(descriptors, 1u) << "a program that waits for a descriptor would wait for ever";
            }
        }
    EXPECT_GE(paused, jobs.size() / 3) << "no job was ever paused: nothing came together";
    for (ASYNC_WAIT_CTX* wait : waits) ASYNC_WAIT_CTX_free(wait);
}

TEST(ProviderCalls, JobsEncryptTogether) {
    ASSERT_TRUE(ASYNC_is_capable());
    ASSERT_EQ(ASYNC_init_thread(64, 0), 1);
    for (std::size_t count : {1u, 3u, 7u, 16u, 40u}) {
        std::vector<Job> jobs(count);
        for (std::size_t i = 0; i < count; ++i) {
            const char* name = i % 5 == 4 ? "AES-256-CBC" : "AES-128-CBC";
            const std::size_t blocks = i % 6 == 5 ? 4096 * i : 1 + i * 37 % 200;  // up to 2 MiB
            jobs[i] = {fetch(ours(), name), Bytes(16 * blocks, static_cast<std::uint8_t>(i)), {}, i % 2 == 0};
            ASSERT_TRUE(jobs[i].cipher);
        }
        run_jobs(jobs);
        for (std::size_t i = 0; i < count; ++i) {
            const char* name = i % 5 == 4 ? "AES-256-CBC" : "AES-128-CBC";
            EXPECT_EQ(jobs[i].out, crypt(fetch(openssl(), name), true, key, iv, jobs[i].in, jobs[i].padding))
                << i << " of " << count;
        }
    }
    ASYNC_cleanup_thread();
}

struct Dropped {
    EVP_CIPHER_CTX* context;
    Bytes* out;
};

int encrypt_in_context(void* argument) {
    const Dropped& job = *static_cast<Dropped*>(argument);
    int n = 0;
    const Bytes in(job.out->size(), 1);
    return EVP_EncryptUpdate(job.context, job.out->data(), &n, in.data(), static_cast<int>(in.size()));
}

/// As when a connection is closed while its job is paused, which OpenSSL never resumes then.
TEST(ProviderCalls, AJobThatIsDroppedWritesNothing) {
    ASSERT_EQ(ASYNC_init_thread(8, 0), 1);
    const EVP_CIPHER* cipher = fetch(ours(), "AES-128-CBC");
    Bytes first(1024, 0x55), second(1024, 0x55);
    const Bytes untouched = first;
    EVP_CIPHER_CTX* contexts[] = {EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_new()};
    for (EVP_CIPHER_CTX* context : contexts)
        ASSERT_EQ(EVP_EncryptInit_ex2(context, cipher, key.data(), iv.data(), nullptr), 1);
    ASYNC_WAIT_CTX* waits[] = {ASYNC_WAIT_CTX_new(), ASYNC_WAIT_CTX_new()};
    ASYNC_JOB* jobs[] = {nullptr, nullptr};
    Dropped dropped{contexts[0], &first}, kept{contexts[1], &second};
    int result = 0;
    ASSERT_EQ(ASYNC_start_job(&jobs[0], waits[0], &result, encrypt_in_context, &dropped, sizeof dropped),
              ASYNC_PAUSE);
    ASSERT_EQ(EVP_EncryptInit_ex2(contexts[0], nullptr, iv.data(), key.data(), nullptr),
              1);  // of another connection
    int state = ASYNC_PAUSE;
    while (state == ASYNC_PAUSE)
        state = ASYNC_start_job(&jobs[1], waits[1], &result, encrypt_in_context, &kept, sizeof kept);
    EXPECT_EQ(state, ASYNC_FINISH);
    EXPECT_EQ(first, untouched);
    EXPECT_NE(second, untouched);
    // Resumed for this test alone, so that its stack is given back.
    while (ASYNC_start_job(&jobs[0], waits[0], &result, encrypt_in_context, &dropped, sizeof dropped) ==
           ASYNC_PAUSE) {
    }
    EXPECT_NE(result, 1);
    for (EVP_CIPHER_CTX* context : contexts) EVP_CIPHER_CTX_free(context);
    for (ASYNC_WAIT_CTX* wait : waits) ASYNC_WAIT_CTX_free(wait);
    ASYNC_cleanup_thread();
}

// --- Processes and threads.

/// Another thread is often inside the slab of the contexts while this one forks.
TEST(ProviderCalls, AChildOfAProgramWithThreadsMakesContexts) {
    const EVP_CIPHER* cipher = fetch(ours(), "AES-128-CTR");
    const auto make = [cipher] {
        Cipher context;
        return EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), 1, nullptr) == 1;
    };
    std::atomic<bool> over{false};
    std::thread other([&] {
        while (!over) make();
    });
    int failed = 0;
    for (int i = 0; i < 500; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(5);
            _exit(make() ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status != 0 && ++failed == 3) break;
    }
    over = true;
    other.join();
    EXPECT_EQ(failed, 0);
}

TEST(ProviderCalls, AChildGoesOnWithItsParentsContext) {
    Cipher context;
    const EVP_CIPHER* cipher = fetch(ours(), "AES-256-CTR");
    ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), 1, nullptr), 1);
    Bytes in(1'000'000, 4), out(in.size());
    const Bytes expected = crypt(fetch(openssl(), "AES-256-CTR"), true, key, iv, in);
    int n = 0;
    ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, in.data(), 500'000), 1);
    const pid_t child = fork();
    if (child == 0) {
        EVP_CipherUpdate(context, out.data() + 500'000, &n, in.data(), 500'000);  // its threads are its own
        _exit(out == expected ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

/// As sshd's child that has not authenticated anyone: what locks memory is killed.
void forbid_locking() {
    sock_filter words[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mlock, 1, 0),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mlock2, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(words), words};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(2);
}

TEST(ProviderCalls, ContextsInASandbox) {
    const EVP_CIPHER *ctr = fetch(ours(), "AES-128-CTR"), *gcm = fetch(ours(), "AES-128-GCM");
    const pid_t child = fork();
    if (child == 0) {
        forbid_locking();
        std::vector<EVP_CIPHER_CTX*> all;
        Bytes out(64);
        bool good = true;
        for (int i = 0; i < 20; ++i)
            for (const EVP_CIPHER* cipher : {ctr, gcm}) {
                int n = 0;
                all.push_back(EVP_CIPHER_CTX_new());
                good = good &&
                       EVP_CipherInit_ex2(all.back(), cipher, key.data(), iv.data(), 1, nullptr) == 1 &&
                       EVP_CipherUpdate(all.back(), out.data(), &n, iv.data(), 16) == 1;
            }
        _exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

/// AES-GCM of large buffers runs on several threads; then in small pieces on the same message.
TEST(ProviderCalls, GcmOnThreads) {
    Bytes in(2'000'037);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    for (const char* name : {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM"})
        for (std::size_t first : {std::size_t{1 << 20}, std::size_t{600'000}, std::size_t{524'305}})
            for (std::size_t ad_n : {0u, 16u, 100u}) {
                Bytes sealed[2], opened[2], tags[2] = {Bytes(16), Bytes(16)};
                for (int i = 0; i < 2; ++i) {
                    const EVP_CIPHER* cipher = fetch(i ? ours() : openssl(), name);
                    for (bool encrypt : {true, false}) {
                        Cipher context;
                        Bytes& out = encrypt ? sealed[i] : opened[i];
                        out = encrypt ? in : sealed[i];
                        int n = 0;
                        ASSERT_EQ(
                            EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), encrypt, nullptr), 1);
                        ASSERT_EQ(EVP_CipherUpdate(context, nullptr, &n, in.data(), static_cast<int>(ad_n)),
                                  1);
                        for (std::size_t at = 0, piece = first; at < in.size();
                             at += piece, piece = 5 + at % 700'000) {
                            piece = std::min(piece, in.size() - at);
                            ASSERT_EQ(EVP_CipherUpdate(context, out.data() + at, &n, out.data() + at,
                                                       static_cast<int>(piece)),
                                      1);
                            if (at > 0) context.become_copy();
                        }
                        if (!encrypt) EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tags[i].data());
                        ASSERT_EQ(EVP_CipherFinal_ex(context, out.data(), &n), 1)
                            << name << " " << encrypt << " " << i;
                        if (encrypt) EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tags[i].data());
                    }
                }
                ASSERT_EQ(sealed[0], sealed[1]) << name << " " << first;
                ASSERT_EQ(tags[0], tags[1]) << name << " " << first;
                ASSERT_EQ(opened[1], in);
            }
}

TEST(ProviderCalls, GcmOnThreadsRefusesForgeries) {
    Bytes text(1 << 20), tag(16);
    int n = 0;
    Cipher sealing;
    const EVP_CIPHER* cipher = fetch(ours(), "AES-256-GCM");
    ASSERT_EQ(EVP_CipherInit_ex2(sealing, cipher, key.data(), iv.data(), 1, nullptr), 1);
    ASSERT_EQ(EVP_CipherUpdate(sealing, text.data(), &n, text.data(), 1 << 20), 1);
    ASSERT_EQ(EVP_CipherFinal_ex(sealing, text.data(), &n), 1);
    ASSERT_EQ(EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, 16, tag.data()), 1);
    for (std::size_t changed :
         {std::size_t{0}, std::size_t{200'000}, std::size_t{(1 << 20) - 1}, std::size_t{1 << 20}}) {
        Cipher opening;
        Bytes received = text, out(1 << 20);
        if (changed < received.size()) received[changed] ^= 1;
        ASSERT_EQ(EVP_CipherInit_ex2(opening, cipher, key.data(), iv.data(), 0, nullptr), 1);
        ASSERT_EQ(EVP_CipherUpdate(opening, out.data(), &n, received.data(), 1 << 20), 1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, 16, tag.data()), 1);
        EXPECT_EQ(EVP_CipherFinal_ex(opening, out.data(), &n) == 1, changed == text.size());
    }
}

TEST(ProviderCalls, ThreadsAtOnce) {
    const EVP_CIPHER* cipher = fetch(ours(), "AES-128-CTR");
    const Bytes in(700'000, 1), expected = crypt(fetch(openssl(), "AES-128-CTR"), true, key, iv, in);
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (int i = 0; i < 4; ++i)
        all.emplace_back([&] {
            for (int round = 0; round < 20; ++round) wrong += crypt(cipher, true, key, iv, in) != expected;
        });
    for (std::thread& one : all) one.join();
    EXPECT_EQ(wrong, 0);
}

// --- Wrong arguments: the reasons are OpenSSL's own.

TEST(ProviderCalls, ErrorsAreThoseOfOpenssl) {
    const EVP_CIPHER* cipher = fetch(ours(), "AES-128-CBC");
    Bytes out(64);
    int n = 0;
    ERR_clear_error();
    {
        Cipher context;
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, nullptr, iv.data(), 1, nullptr), 1);
        EXPECT_EQ(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 16), 0);
        EXPECT_EQ(last_reason(), PROV_R_NO_KEY_SET);
    }
    {
        Cipher context;
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), 0, nullptr), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 16), 1);
        EXPECT_EQ(EVP_CipherFinal_ex(context, out.data(), &n), 0);
        EXPECT_EQ(last_reason(), PROV_R_BAD_DECRYPT);
    }
    {
        Cipher context;
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), 0, nullptr), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 15), 1);
        EXPECT_EQ(EVP_CipherFinal_ex(context, out.data(), &n), 0);
        EXPECT_EQ(last_reason(), PROV_R_WRONG_FINAL_BLOCK_LENGTH);
    }
    {
        Cipher context;
        const EVP_CIPHER* xts = fetch(ours(), "AES-128-XTS");
        ASSERT_TRUE(xts);
        const int result = EVP_CipherInit_ex2(context, xts, key.data(), iv.data(), 1, nullptr);
        const bool refused = result != 1 || EVP_CipherUpdate(context, out.data(), &n, out.data(), 32) != 1;
        EXPECT_TRUE(refused) << "both keys of XTS are the same";
        EXPECT_EQ(last_reason(), PROV_R_XTS_DUPLICATED_KEYS);
    }
}

TEST(ProviderCalls, NoPlaintextOfGcmWithoutItsTag) {
    Cipher context;
    Bytes out(64), in(64, 1);
    int n = 0;
    ASSERT_EQ(EVP_CipherInit_ex2(context, fetch(ours(), "AES-128-GCM"), key.data(), iv.data(), 0, nullptr),
              1);
    ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, in.data(), 64), 1);
    ERR_clear_error();
    EXPECT_EQ(EVP_CipherFinal_ex(context, out.data(), &n), 0);
    EXPECT_EQ(last_reason(), PROV_R_TAG_NOT_SET);
}

/// A vector of GCM that nobody gave is random, and can be read.
TEST(ProviderCalls, AMissingVectorOfGcmIsRandom) {
    std::array<Bytes, 2> vectors;
    for (Bytes& one : vectors) {
        Cipher context;
        Bytes out(16), tag(16);
        int n = 0;
        ASSERT_EQ(EVP_CipherInit_ex2(context, fetch(ours(), "AES-128-GCM"), key.data(), nullptr, 1, nullptr),
                  1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, iv.data(), 16), 1);
        ASSERT_EQ(EVP_CipherFinal_ex(context, tag.data(), &n), 1);
        one.resize(12);
        ASSERT_EQ(EVP_CIPHER_CTX_get_updated_iv(context, one.data(), 12), 1);
    }
    EXPECT_NE(vectors[0], vectors[1]);
    EXPECT_NE(vectors[0], Bytes(12));
}

/// More associated data than waits for the first piece.
TEST(ProviderCalls, MuchAssociatedData) {
    Bytes tags[2];
    for (int i = 0; i < 2; ++i) {
        Cipher context;
        Bytes ad(5000, 3), out(100);
        int n = 0;
        const EVP_CIPHER* cipher = fetch(i ? ours() : openssl(), "AES-256-GCM");
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, key.data(), iv.data(), 1, nullptr), 1);
        for (int piece = 0; piece < 5; ++piece)
            ASSERT_EQ(EVP_CipherUpdate(context, nullptr, &n, ad.data() + 1000 * piece, 1000), 1);
        ASSERT_EQ(EVP_CipherUpdate(context, out.data(), &n, ad.data(), 100), 1);
        Cipher late;
        ASSERT_EQ(EVP_CIPHER_CTX_copy(late, context), 1);
        EXPECT_EQ(EVP_CipherUpdate(late, nullptr, &n, ad.data(), 10), 0) << "after the text has begun";
        tags[i].resize(16);
        ASSERT_EQ(EVP_CipherFinal_ex(context, out.data(), &n), 1);
        ASSERT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tags[i].data()), 1);
    }
    EXPECT_EQ(tags[0], tags[1]);
}

}  // namespace
}  // namespace mpisec::provider::test
