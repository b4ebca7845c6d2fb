#include "aead/throughput.hpp"

#include <chrono>
#include <vector>

namespace mpisec::aead {

bool is_fast(const Selection& selection) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t bytes = 64 * 1024;
    constexpr int tries = 5;
    constexpr auto enough = std::chrono::microseconds(200);
    const std::array<std::uint8_t, max_key_bytes> no_key{};
    auto key = selection.library[size_class(bytes)]->make_key(selection.cipher, no_key.data());
    if (!key) return false;
    std::vector<std::uint8_t> buffer(bytes + tag_bytes);
    const std::array<std::uint8_t, nonce_bytes> nonce{};
    const auto start = Clock::now();
    for (int i = 0; i < tries || Clock::now() - start < enough; ++i) {
        const auto begun = Clock::now();
        if (!key->seal(buffer.data(), buffer.data(), bytes, nonce.data(), nullptr, 0)) return false;
        const std::chrono::duration<double> seconds = Clock::now() - begun;
        if (static_cast<double>(bytes) >= fast_cipher_bytes_per_second * seconds.count()) return true;
    }
    return false;
}

}  // namespace mpisec::aead
