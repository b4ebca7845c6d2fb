// A recursive lock that has its initial value before any code runs.
#pragma once

#include <pthread.h>

namespace mpisec::shim {

/// For the one object (process.hpp), whose constructor is constexpr: the constructor of std::recursive_mutex is
/// constexpr in some standard libraries only.
class RecursiveMutex {
  public:
    void lock() {
        pthread_mutex_lock(&mutex_);
        ++depth_;
    }
    void unlock() {
        --depth_;
        pthread_mutex_unlock(&mutex_);
    }
    /// How often the calling thread, which must have it, has locked it.
    unsigned depth() const { return depth_; }

  private:
    unsigned depth_ = 0;
    pthread_mutex_t mutex_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
};

}  // namespace mpisec::shim
