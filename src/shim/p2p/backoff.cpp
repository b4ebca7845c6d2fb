#include "shim/p2p/backoff.hpp"

#include <sched.h>

#include <atomic>
#include <thread>

#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"

namespace mpisec::shim {
namespace {

using std::chrono::microseconds;

constexpr unsigned polls_before_yielding = 64;
constexpr unsigned polls_between_news = 256;

// Longer than most waits of a program whose ranks are in step, which gains nothing by sleeping, and shorter than a time slice.
constexpr microseconds sleeps_after{2000};
// Several polls between two sleeps, without yielding, so that a long message between ranks of this node does not stall: the MPI library
// moves one piece of it with every poll.
constexpr unsigned polls_between_sleeps = 8;
constexpr microseconds sleep{100};

}  // namespace

void Backoff::pause() {
    pause_inside();
    if (polls_ % polls_between_news == 0) [[unlikely]]
        if (const auto waited_long = process.waited_long.load(std::memory_order_relaxed)) waited_long();
}

void Backoff::pause_inside() {
    ++polls_;
    if (state.yield_while_waiting)
        give_core_away();
    else if (polls_ > polls_before_yielding)
        sched_yield();  // costs little when nobody else wants the core
}

void Backoff::give_core_away() {
    const Clock::time_point now = Clock::now();
    if (polls_ == 1) {
        moved_ = messages_counted();
        sleeps_from_ = now + sleeps_after;
    }
    if (now < sleeps_from_) {
        sched_yield();
    } else if (const std::uint64_t moved = messages_counted(); moved != moved_) {
        moved_ = moved;
        sleeps_from_ = now + sleeps_after;
        sched_yield();
    } else if (polls_ % polls_between_sleeps == 0) {
        std::this_thread::sleep_for(sleep);
    }
}

}  // namespace mpisec::shim
