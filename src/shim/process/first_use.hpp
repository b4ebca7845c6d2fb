// State that is made when it is first used.
#pragma once

#include <atomic>

namespace mpisec::shim {

/// A T of the one object (process.hpp), which is never destroyed unless forget() is called. T may be incomplete here, so
/// that a module's state is private to that module. Threads may race for the first use; the T itself is locked as its
/// owner says.
template <class T>
class FirstUse {
  public:
    constexpr FirstUse() = default;
    FirstUse(const FirstUse&) = delete;
    FirstUse& operator=(const FirstUse&) = delete;

    T& operator*() {
        T* made = made_.load(std::memory_order_acquire);
        return made ? *made : make();
    }
    T* operator->() { return &**this; }
    /// Destroys the T; the next use makes another one. Nobody may use it during this call.
    void forget() {
        if (T* made = made_.exchange(nullptr)) unmake_.load()(made);
    }

  private:
    [[gnu::noinline]] T& make() {
        T* mine = new T();
        T* theirs = nullptr;
        unmake_ = [](T* made) { delete made; };  // T is complete here
        if (made_.compare_exchange_strong(theirs, mine, std::memory_order_acq_rel)) return *mine;
        delete mine;
        return *theirs;
    }

    std::atomic<T*> made_{nullptr};
    std::atomic<void (*)(T*)> unmake_{nullptr};
};

}  // namespace mpisec::shim
