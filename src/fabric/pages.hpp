// Pages of shared memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

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

/// As posix_fallocate(), for programs with timers, too: older kernels give up, and undo what they have done, at every signal. So a little at
/// a time, and once more.
inline int allocate_in_file(int descriptor, off_t begin, std::size_t bytes) {
    constexpr std::size_t little = std::size_t{1} << 20;
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t now = bytes - done < little ? bytes - done : little;
        const int error =
            posix_fallocate(descriptor, begin + static_cast<off_t>(done), static_cast<off_t>(now));
        if (error != 0 && error != EINTR) return error;
        if (error == 0) done += now;
    }
    return 0;
}

}  // namespace mpisec::fabric
