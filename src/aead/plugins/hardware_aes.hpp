// Libraries whose AES falls back to look-up tables, which leak the key through the cache, are used only where
// the CPU has AES and carry-less multiplication.
#pragma once

namespace mpisec::aead::plugins {

inline bool hardware_aes() {
#ifdef __x86_64__
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
    return false;
#endif
}

}  // namespace mpisec::aead::plugins
