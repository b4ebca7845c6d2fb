#include "aead/throughput.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace mpisec::aead {

Speed speed_of(const Selection& selection) {
    using Clock = std::chrono::steady_clock;
    constexpr std::size_t bytes = 64 * 1024;
    constexpr int tries = 5;
    constexpr auto enough = std::chrono::microseconds(200);
    const std::array<std::uint8_t, max_key_bytes> no_key{};
    auto key = selection.library[size_class(bytes)]->make_key(selection.cipher, no_key.data());
    if (!key) return Speed::slow;
    std::vector<std::uint8_t> buffer(bytes + tag_bytes);
    const std::array<std::uint8_t, nonce_bytes> nonce{};
    Speed best = Speed::slow;
    const auto start = Clock::now();
    for (int i = 0; best < Speed::fast && (i < tries || Clock::now() - start < enough); ++i) {
        const auto begun = Clock::now();
        if (!key->seal(buffer.data(), buffer.data(), bytes, nonce.data(), nullptr, 0)) return Speed::slow;
        const std::chrono::duration<double> seconds = Clock::now() - begun;
        best = std::max(best, speed_of(static_cast<double>(bytes) / seconds.count()));
    }
    return best;
}

}  // namespace mpisec::aead
