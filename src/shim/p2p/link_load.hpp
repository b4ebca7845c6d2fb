// How the link to a peer and this core share the work of a large message: what its first part is to be
// (sending.cpp).
//
// A message in several parts is sealed and opened while others of its parts travel. That hides the cipher where
// the core waits for the link. Where the link is so fast that the core is busy all the time, in the kernel's
// network code above all, there is nothing to hide behind, and each part costs MPI a handshake.
#pragma once

#include <cstdint>

namespace mpisec::shim {

/// Smoothed over messages in several parts, for others do not tell.
struct LinkLoad {
    float busy = 0;             ///< part of the time in which the core is not waiting
    float rate = 0;             ///< bytes per ns
    bool fills_core = false;    ///< the link is fast, and the core hardly ever waits for it
    unsigned not_measured = 0;  ///< messages since the last one that told

    void note(float busy_now, float rate_now) {
        busy += (busy_now - busy) / 4;
        rate += (rate_now - rate) / 4;
        if (busy > 0.6F && rate > 3.4F) fills_core = true;
        if (busy < 0.4F || rate < 2.8F) fills_core = false;
        not_measured = 0;
    }
    /// Whether the first part is to be the longer one. Now and then it is not, where it `would_be_all`.
    bool prefers_long_first(bool would_be_all) {
        constexpr unsigned messages_between = 64;
        return fills_core && (!would_be_all || ++not_measured % messages_between != 0);
    }
};

/// Of one message, from when its first part was sealed.
class LoadMeter {
  public:
    explicit LoadMeter(std::uint64_t now) : began_(now), last_(now) {}  ///< ns
    /// A look at what is under way. A long one has moved something; before and in a short one the core had nothing to do.
    void pass(std::uint64_t begin, std::uint64_t end) {
        constexpr std::uint64_t short_look = 3'000;
        if (end - begin < short_look) idle_ += end - last_;
        last_ = end;
    }
    /// When all `bytes` have left.
    void note(LinkLoad& load, std::uint64_t bytes) const {
        if (last_ == began_) return;
        const auto took = static_cast<float>(last_ - began_);
        load.note(1 - static_cast<float>(idle_) / took, static_cast<float>(bytes) / took);
    }

  private:
    std::uint64_t began_, last_, idle_ = 0;
};

}  // namespace mpisec::shim
