// Micro-benchmarks (Google Benchmark) of what `mpisec bench crypto` does not show: setting up a key, as every
// large message does for its own, and what KeySet's choice of a library by size adds to a call.
#include <benchmark/benchmark.h>

#include "aead/aead.hpp"

namespace {

using namespace mpisec::aead;

const std::array<std::uint8_t, max_key_bytes> key_bytes{};
const std::array<std::uint8_t, nonce_bytes> nonce{};
constexpr std::size_t small = 16;

void key_set_up(benchmark::State& state, const Library* library, Cipher cipher) {
    for (auto _ : state) benchmark::DoNotOptimize(library->make_key(cipher, key_bytes.data()));
}

// Libraries that set up lazily show their whole cost only with the first message.
void key_set_up_and_first_message(benchmark::State& state, const Library* library, Cipher cipher) {
    std::array<std::uint8_t, small + tag_bytes> buffer{};
    for (auto _ : state) {
        auto key = library->make_key(cipher, key_bytes.data());
        benchmark::DoNotOptimize(key->seal(buffer.data(), buffer.data(), small, nonce.data(), nullptr, 0));
    }
}

void seal_small(benchmark::State& state, const Library* library, Cipher cipher) {
    std::array<std::uint8_t, small + tag_bytes> buffer{};
    auto key = library->make_key(cipher, key_bytes.data());
    for (auto _ : state)
        benchmark::DoNotOptimize(key->seal(buffer.data(), buffer.data(), small, nonce.data(), nullptr, 0));
}

void seal_small_by_key_set(benchmark::State& state, const Library* library, Cipher cipher) {
    std::array<std::uint8_t, small + tag_bytes> buffer{};
    Selection selection{cipher, {library, library, library}};
    KeySet keys(selection, key_bytes.data());
    for (auto _ : state)
        benchmark::DoNotOptimize(keys.seal(buffer.data(), buffer.data(), small, nonce.data(), nullptr, 0));
}

void register_all(const Library* library, const CipherInfo& cipher) {
    std::string suffix = "/" + std::string(library->name()) + "/" + std::string(cipher.name);
    benchmark::RegisterBenchmark(("key" + suffix).c_str(), key_set_up, library, cipher.id);
    benchmark::RegisterBenchmark(("key_and_16B" + suffix).c_str(), key_set_up_and_first_message, library,
                                 cipher.id);
    benchmark::RegisterBenchmark(("seal_16B" + suffix).c_str(), seal_small, library, cipher.id);
    benchmark::RegisterBenchmark(("seal_16B_key_set" + suffix).c_str(), seal_small_by_key_set, library,
                                 cipher.id);
}

}  // namespace

int main(int argc, char** argv) {
    for (const std::string& name : available())
        if (auto library = load(name))
            for (const CipherInfo& cipher : ciphers())
                if ((*library)->has(cipher.id)) register_all(*library, cipher);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
