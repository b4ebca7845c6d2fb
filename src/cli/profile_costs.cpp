#include "cli/profile_costs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace mpisec::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t ad_bytes = 40;  // as every message has (wire/frame.hpp)
constexpr int rounds = 5;
constexpr auto block_time = std::chrono::microseconds(200);
constexpr std::size_t largest = 512 << 10;

/// One direction at one size; keys here are constants and protect nothing.
class Timing {
  public:
    Timing(aead::KeySet& key, std::size_t bytes, bool opens)
        : key_(key), bytes_(bytes), opens_(opens), plain_(bytes, 0x5a), sealed_(bytes + aead::tag_bytes) {
        good_ = key_.seal(sealed_.data(), plain_.data(), bytes_, next(), ad_.data(), ad_bytes);
        made_with_ = nonce_;
    }

    /// Nanoseconds of a call in the best of a few rounds.
    double best() {
        double least = 1e18;
        for (int round = 0; round < rounds; ++round) {
            int calls = 0;
            const auto start = Clock::now();
            auto now = start;
            do {
                call();
                ++calls;
                now = Clock::now();
            } while (now - start < block_time);
            least = std::min(least, std::chrono::duration<double, std::nano>(now - start).count() / calls);
        }
        return least;
    }
    bool good() const { return good_; }

  private:
    const std::uint8_t* next() {
        ++counter_;
        std::memcpy(nonce_.data() + 4, &counter_, sizeof counter_);
        return nonce_.data();
    }
    void call() {
        good_ =
            opens_
                ? key_.open(plain_.data(), sealed_.data(), bytes_, made_with_.data(), ad_.data(), ad_bytes) &&
                      good_
                : key_.seal(sealed_.data(), plain_.data(), bytes_, next(), ad_.data(), ad_bytes) && good_;
    }

    aead::KeySet& key_;
    std::size_t bytes_;
    bool opens_, good_ = true;
    std::vector<std::uint8_t> plain_, sealed_;
    std::array<std::uint8_t, ad_bytes> ad_{};
    std::array<std::uint8_t, aead::nonce_bytes> nonce_{}, made_with_{};
    std::uint64_t counter_ = 0;
};

/// Sizes on both sides of each limit between two libraries, so that no interpolation line crosses a limit.
std::vector<std::size_t> sizes() {
    std::vector<std::size_t> all = {16, 128, 4096, 65536, largest};
    for (const std::size_t limit : aead::size_class_limits) all.insert(all.end(), {limit, limit + 1});
    std::ranges::sort(all);
    return all;
}

}  // namespace

Costs::Costs(const aead::Selection& selection) {
    for (const bool opens : {false, true})
        for (const std::size_t bytes : sizes()) {
            std::array<std::uint8_t, aead::max_key_bytes> key_bytes{};  // a key of its own for each size
            key_bytes[0] = opens;
            std::memcpy(key_bytes.data() + 1, &bytes, sizeof bytes);
            aead::KeySet key(selection, key_bytes.data());
            Timing timing(key, bytes, opens);
            (opens ? open_ : seal_).push_back({static_cast<double>(bytes), timing.best()});
            good_ = good_ && timing.good();
        }
}

double Costs::at(const std::vector<Point>& points, double bytes) {
    std::size_t i = 1;
    while (i + 1 < points.size() && points[i].bytes < bytes) ++i;
    const Point &a = points[i - 1], &b = points[i];
    const double slope = (b.nanoseconds - a.nanoseconds) / (b.bytes - a.bytes);
    return std::max(0.0, a.nanoseconds + slope * (bytes - a.bytes));
}

}  // namespace mpisec::cli
