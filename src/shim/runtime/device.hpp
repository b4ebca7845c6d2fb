// Memory of GPUs in MPI calls (docs/gpu.md). The library below may not know such memory, and sealing works on the host's, so messages in
// such memory are copied to and from pinned memory.
//
// A program that has no CUDA driver in its process has no such memory. Whether it has one is known without asking: the dynamic linker
// appends every object that it loads to a list, and MPIsec's marker (a library without content) is the last element until something else is
// loaded.
#pragma once

#include <link.h>
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "shim/process/process.hpp"
#include "shim/runtime/pool.hpp"

namespace mpisec::shim {

/// In MPI_Init: from here on MPIsec notices what is loaded.
void watch_for_driver();
/// In MPI_Finalize.
void release_device_memory();

/// Looks for the driver among the objects that have been loaded since the last look.
[[gnu::cold, gnu::noinline]] bool driver_is_loaded();

/// Whether anything has been loaded after the marker.
inline bool something_was_loaded() {
    const link_map* marker = process.device_watch.marker.load(std::memory_order_acquire);
    return __atomic_load_n(&marker->l_next, __ATOMIC_RELAXED) != nullptr;
}

/// Whether a buffer may be in a GPU's memory. Without a driver: two loads and a branch.
inline bool device_is_possible() {
    return something_was_loaded() && driver_is_loaded();
}

/// Asks the driver whether the address is in a GPU's memory. Memory that both sides may touch (managed, pinned) is the host's.
[[gnu::cold, gnu::noinline]] bool ask_driver(const void* address);
inline bool on_device(const void* address) {
    return device_is_possible() && ask_driver(address);
}
/// Whether any of a call's buffers is in a GPU's memory.
template <class... Buffers>
inline bool any_on_device(Buffers... buffers) {
    return device_is_possible() && (ask_driver(buffers) || ...);
}

/// Whether the MPI library says that it takes device memory itself (MPIX_Query_cuda_support).
bool library_takes_device_memory();
/// Whether any of a call's buffers is device memory that the library would fault on.
template <class... Buffers>
inline bool any_foreign_to_library(Buffers... buffers) {
    return any_on_device(buffers...) && !library_takes_device_memory();
}

/// Host memory for a message in a GPU's memory. For a large message it is pinned, so that it is copied directly, and kept for the next one.
class StagingMemory {
  public:
    StagingMemory() = default;
    /// `device`: the message, which tells which GPU it is.
    StagingMemory(const void* device, std::size_t bytes);
    StagingMemory(StagingMemory&& other) noexcept
        : pinned_(std::exchange(other.pinned_, nullptr)), buffer_(std::move(other.buffer_)) {}
    StagingMemory& operator=(StagingMemory&& other) noexcept {
        std::swap(pinned_, other.pinned_);
        std::swap(buffer_, other.buffer_);
        return *this;
    }
    ~StagingMemory();
    std::uint8_t* data() const;
    bool is_pinned() const { return pinned_ != nullptr; }

  private:
    struct PinnedMemory* pinned_ = nullptr;
    Buffer buffer_;  ///< where it is not pinned
};

/// Copies, and waits for the copy. False, with the reason reported, when the driver fails.
bool copy_from_device(void* to, const void* from, std::size_t bytes);
bool copy_to_device(void* to, const void* from, std::size_t bytes);
/// copy_from_device() for memory that may also be the host's.
inline bool copy_from_either(void* to, const void* from, std::size_t bytes) {
    if (on_device(from)) [[unlikely]]
        return copy_from_device(to, from, bytes);
    std::memcpy(to, from, bytes);
    return true;
}

}  // namespace mpisec::shim
