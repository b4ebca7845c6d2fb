// How long the first part of a large message is to be, the rest of which follows in parts of its own (sending.cpp).
//
// A message in several parts is sealed and opened while others of its parts travel: that hides the cipher where the
// core waits for the link. Where the link is so fast that the core is busy all the time, with the kernel's network
// code above all, there is nothing to hide behind, and every part more costs MPI a handshake. Which of the two it is,
// and how fast the machine happens to be, is not known beforehand; so messages of like lengths to one rank are cut now
// in one way, now in the other, and the faster one is kept.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mpisec::shim {

/// Of messages of like lengths to one rank.
class FirstPartTrial {
  public:
    bool long_wins() const { return long_wins_; }
    /// Whether the next one is to have the longer first part.
    bool takes_long() {
        // Two in a row, for what was cut otherwise before finds no warm buffers.
        const bool tries_other = turn_ < 4 ? turn_ >= 2 : turn_ % between >= between - 2;
        if (++turn_ == 4 * between) turn_ = between;
        return long_wins_ != tries_other;
    }
    /// What one took until it was received and opened: ns per byte.
    void note(bool was_long, float took) {
        const bool cut_as_before = noted_ && was_long == last_was_long_;
        noted_ = true;
        last_was_long_ = was_long;
        if (!cut_as_before) return;
        // One that found no receiver takes as long as that one likes. There are fewer of the other way.
        float& mean = mean_[was_long];
        const bool is_other = was_long != long_wins_;
        mean = mean == 0 ? took : mean + (std::min(took, 2 * mean) - mean) / (is_other ? 2 : 4);
        // Only now: what the others took is of the same time.
        if (is_other && mean < clearly * mean_[long_wins_]) long_wins_ = was_long;
    }

  private:
    static constexpr unsigned between = 32;  // messages from one look at the other way to the next
    static constexpr float clearly = 0.97F;  // else the way is not changed
    std::array<float, 2> mean_ = {};         ///< short, long; 0: not known
    std::uint8_t turn_ = 0;
    bool long_wins_ = false, noted_ = false, last_was_long_ = false;
};

/// Of all messages to one rank that may have either. What one takes is known only while no other is under way.
class FirstPartChoice {
  public:
    /// A message begins, and gets a number.
    std::uint64_t begin() { return ++begun_; }
    bool is_alone(std::uint64_t number) const { return begun_ == number && ended_ + 1 == number; }
    void end() { ++ended_; }

    FirstPartTrial& of_length(std::uint64_t bytes) {
        constexpr int shortest = 17;  // 128 KiB
        const int magnitude = static_cast<int>(std::bit_width(bytes)) - 1;
        const auto last = static_cast<int>(trials_.size()) - 1;
        return trials_[static_cast<std::size_t>(std::clamp(magnitude - shortest, 0, last))];
    }

  private:
    std::uint64_t begun_ = 0, ended_ = 0;
    std::array<FirstPartTrial, 7> trials_;  ///< up to 256 KiB, 512 KiB, …, 8 MiB and more
};

}  // namespace mpisec::shim
