// Ranks that wait long in a collective compare their calls: where one broadcasts 4 bytes and another 2 MB, they may have
// chosen algorithms in which each waits for the other. A rank that has waited for two seconds tells rank 0 of the
// communicator, and the root, by a notice (p2p/notices.hpp), and again after twice the time. A rank that hears of a call
// other than its own, or of one that has failed, reports it, ends its collectives of the communicator in an error, and
// tells the rank that asked.
//
// Until the two seconds have passed, this costs only a look at the clock now and then. A rank that is outside MPI, or
// waits inside the MPI library, hears nothing until it is back.
#pragma once

#include <chrono>
#include <cstdint>

#include "shim/collective/collective_context.hpp"
#include "shim/collective/collective_plan.hpp"

namespace mpisec::shim {

/// To be called for each collective when it starts, under the Guard.
void remember_call(CollectiveContext& collective_context, std::uint64_t number, const CollectivePlan& plan);

/// The call ended in an error here, so what other ranks wait for in the same call may never arrive: tells rank 0.
void remember_failure(CollectiveContext& collective_context, std::uint64_t number);

/// Watches how long one collective waits. Under the Guard.
class LongWait {
  public:
    /// To be called at each pass while the collective waits: now and then sends and receives notices.
    void pass(CollectiveContext& collective_context, std::uint64_t number) {
        if (++passes_ % passes_between_looks == 0) look(collective_context, number);
    }

  private:
    using Clock = std::chrono::steady_clock;
    void look(CollectiveContext& collective_context, std::uint64_t number);

    static constexpr unsigned passes_between_looks = 64;
    unsigned passes_ = 0;
    Clock::time_point next_{};
    Clock::duration interval_{};
};

}  // namespace mpisec::shim
