// What this process holds of the CUDA driver for messages in a GPU's memory: shared by device.cpp and device_copies.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/driver.hpp"

namespace mpisec::shim {

/// What copies of one context's memory go through. Two streams have pinned memory each, so that one is filled while the other is emptied.
/// The other two streams carry the pieces of messages that are copied while they travel (device_copies.hpp).
struct Staging {
    static constexpr std::size_t bytes = std::size_t{1} << 20;
    gpu::CuContext context{};
    gpu::CuStream stream[2]{};
    std::uint8_t* pinned[2]{};
    gpu::CuStream from_device{}, to_device{};
    std::vector<gpu::CuEvent> unused_events;
};

/// Used by one message at a time. It is the host's own memory, which the driver has only pinned: when the program ends the context, copies
/// of it become slow, and nothing else happens.
struct PinnedMemory {
    std::uint8_t* data;
    std::size_t bytes;
    gpu::CuContext context;
    bool in_use;

    bool holds(const std::uint8_t* from, std::size_t n) const {
        return data <= from && from + n <= data + bytes;
    }
};

struct DeviceMemory {
    std::mutex mutex;
    std::unique_ptr<gpu::Driver> driver;
    std::vector<std::unique_ptr<Staging>> stagings;
    std::vector<std::unique_ptr<PinnedMemory>> pinned;
    void* markers[2]{};  ///< handles
    unsigned newest = 0;
    bool marked = false;
    unsigned long long loaded = 0;  ///< objects loaded so far, where there is no marker
};

/// The staging of the context that the address belongs to. Under the mutex. Null, with the reason reported, when the driver has none.
Staging* staging_of_address(DeviceMemory& memory, gpu::CuAddress address);
/// Reports the failure; returns false.
bool driver_failed(const gpu::Driver& driver, gpu::CuResult error, const char* what);

}  // namespace mpisec::shim
