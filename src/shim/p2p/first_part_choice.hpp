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
    /// Whether the time of the next one is wanted: those of both ways, one after the other.
    bool wants_time() const { return turn_ < first_try + in_a_row; }
    /// Whether it is to have the longer first part.
    bool takes_long() {
        const bool tries_other = turn_ >= first_try && turn_ < first_try + in_a_row;
        turn_ = (turn_ + 1) % between;
        return long_wins_ != tries_other;
    }
    /// What one took until it was received and opened: ns per byte.
    void note(bool was_long, float took) {
        Times& times = times_[was_long];
        // What was cut otherwise before finds no warm buffers: the first of a row does not count.
        if (noted_ && was_long == last_was_long_) times = {times.newer, took};
        noted_ = true;
        last_was_long_ = was_long;
        // The other way has been tried a moment ago: both times are of now, and of each the shorter one counts, for a
        // message whose receiver was late says nothing.
        if (turn_ != first_try + in_a_row || was_long == long_wins_ || times.older == 0) return;
        if (times.best() < clearly * times_[long_wins_].best()) long_wins_ = was_long;
    }

  private:
    /// Of two messages one after the other; 0: not known.
    struct Times {
        float older = 0, newer = 0;
        float best() const { return std::min(older, newer); }
    };
    static constexpr unsigned between = 48;  // messages from one try of the other way to the next
    static constexpr unsigned first_try = 3, in_a_row = 3;
    static constexpr float clearly = 0.97F;  // else the way is not changed
    std::array<Times, 2> times_;             ///< short, long
    unsigned turn_ = 0;
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
