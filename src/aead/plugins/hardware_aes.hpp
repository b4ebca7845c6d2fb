// Libraries whose AES falls back to look-up tables, which leak the key through the cache, are used only where the CPU has instructions for
// AES and carry-less multiplication.
#pragma once

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace mpisec::aead::plugins {

inline bool hardware_aes() {
#ifdef __x86_64__
    // Not __builtin_cpu_supports(), because its table is in a library that not every compiler provides.
    static const bool both = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        constexpr unsigned wanted = bit_AES | bit_PCLMUL;
        return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & wanted) == wanted;
    }();
    return both;
#else
    return false;
#endif
}

}  // namespace mpisec::aead::plugins
