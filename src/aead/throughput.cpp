#include "aead/throughput.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace mpisec::aead {

bool is_fast(const Selection& selection) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t bytes = 64 * 1024;
    constexpr double fast = 10e9;  // bytes per second
    constexpr int tries = 5;
    const std::array<std::uint8_t, max_key_bytes> no_key{};
    auto key = selection.library[size_class(bytes)]->make_key(selection.cipher, no_key.data());
    if (!key) return false;
    std::vector<std::uint8_t> buffer(bytes + tag_bytes);
    const std::array<std::uint8_t, nonce_bytes> nonce{};
    auto best = Clock::duration::max();
    for (int i = 0; i < tries; ++i) {
        const auto begun = Clock::now();
        if (!key->seal(buffer.data(), buffer.data(), bytes, nonce.data(), nullptr, 0)) return false;
        best = std::min(best, Clock::now() - begun);
    }
    return static_cast<double>(bytes) >= fast * std::chrono::duration<double>(best).count();
}

}  // namespace mpisec::aead
