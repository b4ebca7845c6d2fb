// Pages of shared memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "base/signals_blocked.hpp"

namespace mpisec::fabric {

inline constexpr std::size_t page = 4096;

/// Rounds up to whole pages.
constexpr std::size_t pages(std::size_t bytes) {
    return (bytes + page - 1) / page * page;
}

/// Allocates the memory now, without touching it: where /dev/shm is full, that would be a bus error. Kernels before Linux 5.14 do not know
/// the advice and allocate nothing. False when there is no memory.
inline bool populate_pages(void* begin, std::size_t bytes) {
#ifndef MADV_POPULATE_WRITE
    constexpr int MADV_POPULATE_WRITE = 23;  // linux/mman.h
#endif
    return madvise(begin, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

/// As posix_fallocate(), for programs with timers, too: at a signal, older kernels give up and undo what they have done.
inline int allocate_in_file(int descriptor, off_t begin, std::size_t bytes) {
    const SignalsBlocked blocked;
    return posix_fallocate(descriptor, begin, static_cast<off_t>(bytes));
}

}  // namespace mpisec::fabric
