#include "provider/choice.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "aead/calibration.hpp"
#include "provider/libraries.hpp"

namespace mpisec::provider {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::size_t, size_classes> samples = {256, 1024, 16384};
constexpr std::array<int, size_classes> calls_per_block = {24, 8, 1};
constexpr int min_rounds = 6, max_rounds = 16;
constexpr auto time_limit = std::chrono::milliseconds(80);
// Reaching a library through EVP and the provider, which of OpenSSL's own time is a part that is measured.
constexpr double way_ns = 8;
// What is not clearly faster somewhere, or is slower anywhere, is left to OpenSSL.
constexpr double faster = 0.93, no_slower = 1.05;

constexpr bool is_aead(int mode) {
    return mode == mpisec_gcm || mode == mpisec_chacha;
}

struct Contestant {
    std::size_t library;
    void* key = nullptr;
    std::array<double, size_classes> best_ns{};
};

/// One mode, length of key and direction.
struct Race {
    int mode;
    std::size_t key_n;
    bool encrypt;
    std::vector<Contestant> contestants;
};

struct Buffers {
    std::vector<std::uint8_t> from = std::vector<std::uint8_t>(samples.back(), 0x5a), to = from;
};

bool serves(const mpisec_cipher_plugin& library, int mode, std::size_t key_n) {
    return (is_aead(mode) ? library.start != nullptr : library.crypt != nullptr) && library.has(mode, key_n);
}

double time_calls(const Race& race, const Contestant& one, std::size_t size, Buffers& buffers) {
    const mpisec_cipher_plugin& library = *libraries()[one.library];
    std::uint8_t iv[16] = {1}, tag[16] = {};
    const int encrypt = race.encrypt ? 1 : 0;
    // A block of AES for each byte or bit.
    const std::size_t n = samples[size] / (race.mode == mpisec_cfb8   ? 16
                                           : race.mode == mpisec_cfb1 ? 128
                                                                      : 1);
    const bool bare = one.library == openssl_index() && race.mode != mpisec_xts && !is_aead(race.mode);
    const auto start = Clock::now();
    for (int i = 0; i < calls_per_block[size]; ++i) {
        if (is_aead(race.mode)) {
            library.start(one.key, iv, 12, tag, 13);
            library.update(one.key, encrypt, buffers.to.data(), buffers.from.data(), n);
            library.finish(one.key, encrypt, tag, 16);
        } else if (bare) {  // its context keeps the vector from call to call, as a program's does
            library.update(one.key, encrypt, buffers.to.data(), buffers.from.data(), n);
        } else {
            library.crypt(one.key, encrypt, buffers.to.data(), buffers.from.data(), n, iv);
        }
    }
    const std::chrono::duration<double, std::nano> spent = Clock::now() - start;
    return spent.count() / calls_per_block[size] + (one.library == openssl_index() ? 0 : way_ns);
}

/// (mode, bytes of the key) of all that can be offered.
std::vector<std::pair<int, std::size_t>> everything() {
    std::vector<std::pair<int, std::size_t>> all = {{mpisec_xts, 32}, {mpisec_xts, 64}, {mpisec_chacha, 32}};
    for (int mode :
         {mpisec_ecb, mpisec_cbc, mpisec_cfb, mpisec_cfb8, mpisec_ofb, mpisec_ctr, mpisec_gcm, mpisec_cfb1})
        for (const std::size_t key_n : {std::size_t{16}, std::size_t{24}, std::size_t{32}})
            all.emplace_back(mode, key_n);
    return all;
}

std::vector<Race> races() {
    std::uint8_t key[64];
    for (std::size_t i = 0; i < sizeof key; ++i) key[i] = static_cast<std::uint8_t>(i);  // protects nothing
    std::vector<Race> made;
    for (auto [mode, key_n] : everything())
        for (bool encrypt : {false, true}) {
            made.push_back({mode, key_n, encrypt, {}});
            for (std::size_t i = 0; i < libraries().size(); ++i) {
                if (!serves(*libraries()[i], mode, key_n)) continue;
                void* ready = libraries()[i]->key_new(mode, key, key_n, encrypt);
                if (!ready) continue;
                std::uint8_t iv[16] = {1};
                if (i == openssl_index() && !is_aead(mode) && mode != mpisec_xts)
                    libraries()[i]->crypt(ready, encrypt, iv, iv, 16, iv);
                made.back().contestants.push_back({i, ready, {}});
                made.back().contestants.back().best_ns.fill(std::numeric_limits<double>::infinity());
            }
        }
    return made;
}

/// The fastest library of the race per size, OpenSSL left out; and whether it loses or wins against OpenSSL.
void decide(const Race& race, Choice& choice, bool& loses, bool& wins) {
    for (std::size_t size = 0; size < size_classes; ++size) {
        double best = std::numeric_limits<double>::infinity(), openssl = best;
        std::size_t library = openssl_index();
        for (const Contestant& one : race.contestants) {
            if (one.library == openssl_index()) openssl = one.best_ns[size];
            if (one.library != openssl_index() && one.best_ns[size] < best)
                best = one.best_ns[size], library = one.library;
        }
        choice.library[race.encrypt][size] = static_cast<std::uint8_t>(library);
        loses = loses || best > openssl * no_slower;
        wins = wins || best < openssl * faster;
    }
}

/// MPISEC_PROVIDER_LIBRARY, where it names a library.
void pin(Choices& all, const char* name) {
    std::size_t index = 0;
    while (index < libraries().size() && std::strcmp(libraries()[index]->name, name) != 0) ++index;
    for (auto& [which, choice] : all) {
        choice.offered = index < libraries().size() && serves(*libraries()[index], which.first, which.second);
        if (!choice.offered) continue;
        for (auto& direction : choice.library) direction.fill(static_cast<std::uint8_t>(index));
    }
}

/// Another one where what is measured has changed, so that what an earlier version of MPIsec remembers does not count.
constexpr const char* version_of_measurements = "2";

/// What the measurements depend on.
std::string measured_on() {
    std::string text = aead::calibration_key(aead::Cipher::aes_256_gcm, "").cpu + "; " +
                       OpenSSL_version(OPENSSL_VERSION) + "; " + installed_plugins() +
                       version_of_measurements;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

/// Whether what a file remembered is whole, and each library can do what it is to do.
bool usable(const Choices& all) {
    for (const auto& which : everything()) {
        const auto found = all.find(which);
        if (found == all.end()) return false;
        for (const auto& direction : found->second.library)
            for (std::uint8_t library : direction)
                if (!serves(*libraries()[library], which.first, which.second)) return false;
    }
    return true;
}

Choices choose() {
    const char* wish = secure_getenv("MPISEC_PROVIDER_LIBRARY");
    const std::string file = choice_file(), here = measured_on();
    std::optional<Choices> all = recall(file, here, libraries().size());
    if (!all || !usable(*all)) {
        all = calibrate();
        remember(file, here, *all);
    }
    if (!wish || !*wish) return *all;
    if (std::strcmp(wish, "all") != 0) {
        pin(*all, wish);
        return *all;
    }
    for (auto& [which, choice] : *all) choice.offered = choice.library[1][0] != openssl_index();
    return *all;
}

}  // namespace

Choices calibrate() {
    std::vector<Race> all = races();
    Buffers buffers;
    const auto end = Clock::now() + time_limit;
    // By turns, so that a machine that changes speed changes it for everyone.
    for (int round = 0; round < max_rounds && (round < min_rounds || Clock::now() < end); ++round)
        for (Race& race : all)
            for (std::size_t size = 0; size < size_classes; ++size)
                for (Contestant& one : race.contestants)
                    one.best_ns[size] = std::min(one.best_ns[size], time_calls(race, one, size, buffers));
    Choices choices;
    std::map<std::pair<int, std::size_t>, std::pair<bool, bool>> outcome;  // loses, wins
    for (const Race& race : all) {
        auto& [loses, wins] = outcome[{race.mode, race.key_n}];
        Choice& choice = choices[{race.mode, race.key_n}];
        decide(race, choice, loses, wins);
        choice.offered = wins && !loses;
        for (const Contestant& one : race.contestants) libraries()[one.library]->key_free(one.key);
    }
    return choices;
}

const Choices& choices() {
    static const Choices& made = *new Choices(choose());
    return made;
}

}  // namespace mpisec::provider
