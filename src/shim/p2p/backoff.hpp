// How a waiting rank spends the time between polls that found nothing.
#pragma once

#include <chrono>
#include <cstdint>

namespace mpisec::shim {

/// Of one wait. Where every rank has a core of its own it polls on, and after a while yields between polls. Where ranks outnumber
/// cores (MPISEC_YIELD) it yields at every poll, because what it waits for may need this core, and sleeps between a few polls once
/// nothing was sealed or opened for a while: a yield does not give away much of the core.
class Backoff {
  public:
    /// After some milliseconds of waiting this also hears what others have to say (notices.hpp).
    void pause();
    /// Without hearing: for waits inside an operation, which must not be entered again.
    void pause_inside();

  private:
    [[gnu::noinline]] void give_core_away();

    using Clock = std::chrono::steady_clock;
    unsigned polls_ = 0;
    std::uint64_t moved_ = 0;          ///< messages and segments sealed and opened by this rank, as last seen
    Clock::time_point sleeps_from_{};  ///< unless something moves until then
};

}  // namespace mpisec::shim
