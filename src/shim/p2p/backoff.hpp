// How a waiting rank spends the time between polls that found nothing.
#pragma once

#include <chrono>
#include <cstdint>

namespace mpisec::shim {

/// State of one wait. Where every rank has a core of its own, the rank keeps polling, and after a while yields between polls. Where ranks
/// outnumber cores (MPISEC_YIELD), it yields at every poll, because what it waits for may need this core, and it sleeps after every few
/// polls once nothing has been sealed or opened for a while: a yield gives away little of the core.
class Backoff {
  public:
    /// After some milliseconds of waiting, this also receives notices from other ranks (notices.hpp).
    void pause();
    /// Receives no notices: for waits inside an operation, which must not be re-entered.
    void pause_inside();

  private:
    [[gnu::noinline]] void give_core_away();

    using Clock = std::chrono::steady_clock;
    unsigned polls_ = 0;
    std::uint64_t moved_ = 0;          ///< messages and segments sealed and opened by this rank, as last seen
    Clock::time_point sleeps_from_{};  ///< the wait sleeps from then on, unless something moves before
};

}  // namespace mpisec::shim
