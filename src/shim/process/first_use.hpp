// State that is made when it is first used.
#pragma once

#include <atomic>

namespace mpisec::shim {

/// A T of the one object that is never destroyed (process.hpp), unless it is forgotten. T may be incomplete here, so that what a
/// module keeps is that module's own business. Threads may race for the first use; what T holds is locked as
/// its owner says.
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
    /// What it holds is no more; the next use makes another. Nobody uses it meanwhile.
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
