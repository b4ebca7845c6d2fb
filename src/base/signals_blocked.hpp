// Threads of MPIsec's own beside the program's.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace mpisec {

/// Blocks every signal while it lives: threads that are made in that time inherit the mask, because the program's signals are for the
/// program's threads.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

}  // namespace mpisec
