// How long the first part of a large message should be; the rest follows in parts of its own (sending.cpp).
//
// A message in several parts is sealed and opened while other parts of it travel, which hides the cipher where the core waits for the link.
// Where the link is so fast that the core is busy all the time, above all with the kernel's network code, there is nothing to hide behind,
// and every further part costs MPI a handshake. Which of the two holds, and how fast the machine happens to be, is not known beforehand; so
// messages of similar lengths to one rank are cut now in one way, now in the other, and the faster way is kept.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mpisec::shim {

/// The trial for messages of similar lengths to one rank.
class FirstPartTrial {
  public:
    bool long_wins() const { return long_wins_; }
    /// Whether the time of the next message is wanted: both ways are timed, one after the other.
    bool wants_time() const { return turn_ < first_try + in_a_row; }
    /// Whether the next message should have the longer first part.
    bool takes_long() {
        const bool tries_other = turn_ >= first_try && turn_ < first_try + in_a_row;
        turn_ = (turn_ + 1) % between;
        return long_wins_ != tries_other;
    }
    /// Notes the time that a message took until it was received and opened, in ns per byte.
    void note(bool was_long, float took) {
        Times& times = times_[was_long];
        // A message that is cut in another way than the one before it finds no warm buffers: the first of a row does not count.
        if (noted_ && was_long == last_was_long_) times = {times.newer, took};
        noted_ = true;
        last_was_long_ = was_long;
        // The other way has just been tried, so both times are current. The shorter time of each way counts, because a message whose
        // receiver was late says nothing.
        if (turn_ != first_try + in_a_row || was_long == long_wins_ || times.older == 0) return;
        if (times.best() < clearly * times_[long_wins_].best()) long_wins_ = was_long;
    }

  private:
    /// Times of two consecutive messages; 0: not known.
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

/// Trials for all messages to one rank that can be cut in either way. A message's time is known only while no other is under way.
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
