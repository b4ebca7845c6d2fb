// For a while, no signal of the program reaches this thread or the threads that it makes.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace mpisec {

/// Blocks every signal while it lives. Threads made in that time inherit the mask: the program's signals are for its own threads.
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
