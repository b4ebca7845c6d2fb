// Between two looks of a thread that waits without sleeping.
#pragma once

namespace mpisec {

/// Tells the processor that this thread spins, so that the core's other hardware thread gets more of it.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace mpisec
