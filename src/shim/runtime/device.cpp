#include "shim/runtime/device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aead/aead.hpp"
#include "gpu/driver.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/device_memory.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {

namespace {

/// An element that has a successor: while it is the marker, every call asks.
constexpr link_map something_follows{0, nullptr, nullptr, const_cast<link_map*>(&nothing_follows), nullptr};

/// Puts a marker at the end of the linker's list. There are two, so that one stays valid for threads that read it
/// while the other is moved.
bool move_marker(DeviceMemory& memory) {
    const unsigned other = 1 - memory.newest;
    const std::string file = aead::plugin_directory() + "/libmpisec-marker-" + (other ? "b" : "a") + ".so";
    if (memory.markers[other]) dlclose(memory.markers[other]);
    memory.markers[other] = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    link_map* map = nullptr;
    if (!memory.markers[other] || dlinfo(memory.markers[other], RTLD_DI_LINKMAP, &map) != 0) return false;
    memory.newest = other;
    process.device_watch.marker.store(map, std::memory_order_release);
    return true;
}

unsigned long long objects_loaded() {
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            *static_cast<unsigned long long*>(to) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

bool find_loaded_driver(DeviceMemory& memory) {
    auto driver = gpu::find_driver(true);
    if (!driver) return false;
    memory.driver = std::make_unique<gpu::Driver>(*driver);
    process.device_watch.marker.store(&something_follows, std::memory_order_release);
    process.device_watch.driver.store(true, std::memory_order_release);
    return true;
}

/// The context that an address belongs to; for memory that belongs to none, the thread's current context or that of the memory's device.
gpu::CuContext context_of(const gpu::Driver& driver, gpu::CuAddress address) {
    gpu::CuContext context = nullptr;
    driver.cuPointerGetAttribute(&context, gpu::cu_pointer_context, address);
    if (!context) driver.cuCtxGetCurrent(&context);
    int device = 0;
    if (!context && driver.cuPointerGetAttribute(&device, gpu::cu_pointer_device, address) == gpu::cu_success)
        driver.cuDevicePrimaryCtxRetain(&context, device);
    return context;
}

/// Releases what the staging has in the current context.
void release(const gpu::Driver& driver, Staging& staging) {
    for (gpu::CuStream stream :
         {staging.stream[0], staging.stream[1], staging.from_device, staging.to_device})
        if (stream) driver.cuStreamDestroy_v2(stream);
    for (std::uint8_t* pinned : staging.pinned)
        if (pinned) {
            explicit_bzero(pinned, Staging::bytes);
            driver.cuMemFreeHost(pinned);
        }
    for (gpu::CuEvent event : std::exchange(staging.unused_events, {})) driver.cuEventDestroy_v2(event);
}

/// The staging of the current context. Null, with the reason reported, when the driver has no memory left.
Staging* staging_of(DeviceMemory& memory, gpu::CuContext context) {
    for (const auto& one : memory.stagings)
        if (one->context == context) return one.get();
    const gpu::Driver& driver = *memory.driver;
    auto made = std::make_unique<Staging>();
    made->context = context;
    for (int i : {0, 1}) {
        void* pinned = nullptr;
        gpu::CuResult error = driver.cuMemHostAlloc(&pinned, Staging::bytes, 0);
        if (error == gpu::cu_success)
            error = driver.cuStreamCreate(&made->stream[i], gpu::cu_stream_non_blocking);
        if (error == gpu::cu_success)
            error =
                driver.cuStreamCreate(i ? &made->to_device : &made->from_device, gpu::cu_stream_non_blocking);
        made->pinned[i] = static_cast<std::uint8_t*>(pinned);
        if (error != gpu::cu_success) {
            driver_failed(driver, error, "give pinned memory and a stream for a message in a GPU's memory");
            release(driver, *made);
            return nullptr;
        }
    }
    return memory.stagings.emplace_back(std::move(made)).get();
}

/// One copy, in pieces of the pinned memory's size.
struct Copy {
    const gpu::Driver& driver;
    Staging& staging;
    std::uint8_t* host;
    gpu::CuAddress device;
    std::size_t bytes;

    std::size_t pieces() const { return (bytes + Staging::bytes - 1) / Staging::bytes; }
    std::size_t size(std::size_t piece) const {
        return std::min(Staging::bytes, bytes - piece * Staging::bytes);
    }
    gpu::CuStream stream(std::size_t piece) const { return staging.stream[piece % 2]; }
    std::uint8_t* pinned(std::size_t piece) const { return staging.pinned[piece % 2]; }
    gpu::CuResult wait(std::size_t piece) const { return driver.cuStreamSynchronize(stream(piece)); }

    gpu::CuResult start_out(std::size_t piece) const {
        return driver.cuMemcpyDtoHAsync_v2(pinned(piece), device + piece * Staging::bytes, size(piece),
                                           stream(piece));
    }
    /// Used where the host's memory is pinned, too.
    gpu::CuResult directly(bool from_device) const {
        const gpu::CuResult error = from_device ? driver.cuMemcpyDtoHAsync_v2(host, device, bytes, stream(0))
                                                : driver.cuMemcpyHtoDAsync_v2(device, host, bytes, stream(0));
        return error == gpu::cu_success ? wait(0) : error;
    }
    gpu::CuResult out() const {
        gpu::CuResult error = start_out(0);
        for (std::size_t i = 0; i < pieces() && error == gpu::cu_success; ++i) {
            if (i + 1 < pieces()) error = start_out(i + 1);
            if (error == gpu::cu_success) error = wait(i);
            if (error == gpu::cu_success) std::memcpy(host + i * Staging::bytes, pinned(i), size(i));
        }
        return error;
    }
    gpu::CuResult in() const {
        gpu::CuResult error = gpu::cu_success;
        for (std::size_t i = 0; i < pieces() && error == gpu::cu_success; ++i) {
            if (i >= 2) error = wait(i);
            if (error != gpu::cu_success) break;
            std::memcpy(pinned(i), host + i * Staging::bytes, size(i));
            error = driver.cuMemcpyHtoDAsync_v2(device + i * Staging::bytes, pinned(i), size(i), stream(i));
        }
        for (std::size_t i = 0; i < 2; ++i)
            if (const gpu::CuResult last = wait(i); error == gpu::cu_success) error = last;
        return error;
    }
};

// A message that fits into one buffer of Staging is copied through that in less time.
constexpr std::size_t smallest_pinned = Staging::bytes;
/// The most memory that stays pinned while no message has it; and so the largest message that gets some.
constexpr std::size_t most_unused = std::size_t{256} << 20;

/// Allocates and pins memory; null where that fails.
PinnedMemory* pin(DeviceMemory& memory, const void* device, std::size_t bytes) {
    const gpu::Driver& driver = *memory.driver;
    const gpu::CuContext context = context_of(driver, reinterpret_cast<gpu::CuAddress>(device));
    const gpu::CurrentContext current(driver, context);
    void* data = current ? std::aligned_alloc(smallest_pinned, bytes) : nullptr;
    if (!data) return nullptr;
    if (driver.cuMemHostRegister_v2(data, bytes, gpu::cu_pinned_for_all_contexts) != gpu::cu_success) {
        std::free(data);
        return nullptr;
    }
    auto made =
        std::make_unique<PinnedMemory>(PinnedMemory{static_cast<std::uint8_t*>(data), bytes, context, true});
    return memory.pinned.emplace_back(std::move(made)).get();
}

void unpin(const gpu::Driver& driver, const PinnedMemory& one) {
    {
        const gpu::CurrentContext current(driver, one.context);
        if (current) driver.cuMemHostUnregister(one.data);
    }
    explicit_bzero(one.data, one.bytes);
    std::free(one.data);
}

/// Gives back pinned memory that no message has, except for `most` bytes.
void unpin_unused(DeviceMemory& memory, std::size_t most) {
    std::size_t unused = 0;
    std::erase_if(memory.pinned, [&](const auto& one) {
        if (one->in_use) return false;
        if (unused + one->bytes <= most) {
            unused += one->bytes;
            return false;
        }
        unpin(*memory.driver, *one);
        return true;
    });
}

bool copy(void* host, const void* device, std::size_t bytes, bool out) {
    if (bytes == 0) return true;
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    const gpu::Driver& driver = *memory.driver;
    const auto address = reinterpret_cast<gpu::CuAddress>(device);
    Staging* staging = staging_of_address(memory, address);
    if (!staging) return false;
    const gpu::CurrentContext current(driver, staging->context);
    const Copy one{driver, *staging, static_cast<std::uint8_t*>(host), address, bytes};
    const bool pinned =
        std::ranges::any_of(memory.pinned, [&](const auto& it) { return it->holds(one.host, bytes); });
    const gpu::CuResult error = pinned ? one.directly(out) : out ? one.out() : one.in();
    return error == gpu::cu_success ||
           driver_failed(driver, error, "copy a message from or to a GPU's memory");
}

}  // namespace

Staging* staging_of_address(DeviceMemory& memory, gpu::CuAddress address) {
    const gpu::CuContext context = context_of(*memory.driver, address);
    const gpu::CurrentContext current(*memory.driver, context);
    if (current) return staging_of(memory, context);
    say("a message in a GPU's memory belongs to no CUDA context that can be used");
    return nullptr;
}

bool driver_failed(const gpu::Driver& driver, gpu::CuResult error, const char* what) {
    say(std::string("the CUDA driver could not ") + what + " (" + driver.text(error) + ")");
    return false;
}

void watch_for_driver() {
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    if (memory.driver || find_loaded_driver(memory)) return;
    memory.marked = move_marker(memory);
    if (!memory.marked) {  // then every call asks
        memory.loaded = objects_loaded();
        process.device_watch.marker.store(&something_follows, std::memory_order_release);
    }
    find_loaded_driver(memory);  // another thread may have loaded it in the meantime
}

bool driver_is_loaded() {
    if (process.device_watch.driver.load(std::memory_order_acquire)) return true;
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    if (memory.driver) return true;
    if (memory.marked) {
        if (!something_was_loaded()) return false;  // another thread has moved it
        if (!move_marker(memory)) memory.marked = false;
    } else {
        const unsigned long long now = objects_loaded();
        if (now == memory.loaded) return false;
        memory.loaded = now;
    }
    return find_loaded_driver(memory);
}

bool ask_driver(const void* address) {
    const gpu::Driver& driver = *process.device_memory->driver;
    unsigned type = 0;
    int managed = 0;
    const auto at = reinterpret_cast<gpu::CuAddress>(address);
    if (!address || driver.cuPointerGetAttribute(&type, gpu::cu_pointer_memory_type, at) != gpu::cu_success)
        return false;
    if (type != gpu::cu_memory_of_device) return false;
    driver.cuPointerGetAttribute(&managed, gpu::cu_pointer_is_managed, at);
    return managed == 0;
}

bool library_takes_device_memory() {
    auto* ask = reinterpret_cast<int (*)()>(library_symbol("MPIX_Query_cuda_support"));
    return ask && ask() == 1;
}

StagingMemory::StagingMemory(const void* device, std::size_t bytes) {
    if (bytes >= smallest_pinned && bytes <= most_unused) {
        DeviceMemory& memory = *process.device_memory;
        std::lock_guard lock(memory.mutex);
        const std::size_t room = (bytes + smallest_pinned - 1) / smallest_pinned * smallest_pinned;
        const auto unused = std::ranges::find_if(memory.pinned, [&](const auto& one) {
            return !one->in_use && one->bytes >= room && one->bytes <= 2 * room;
        });
        pinned_ = unused != memory.pinned.end() ? unused->get() : pin(memory, device, room);
        if (pinned_) pinned_->in_use = true;
    }
    if (!pinned_) buffer_ = Buffer(bytes + 1);
}

StagingMemory::~StagingMemory() {
    if (!pinned_) return;
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    pinned_->in_use = false;
    unpin_unused(memory, most_unused);
}

std::uint8_t* StagingMemory::data() const {
    return pinned_ ? pinned_->data : buffer_.data();
}

bool copy_from_device(void* to, const void* from, std::size_t bytes) {
    return copy(to, from, bytes, true);
}
bool copy_to_device(void* to, const void* from, std::size_t bytes) {
    return copy(const_cast<void*>(from), to, bytes, false);
}

void release_device_memory() {
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    for (const auto& one : memory.stagings) {
        const gpu::Driver& driver = *memory.driver;
        const gpu::CurrentContext current(driver, one->context);
        unsigned type = 0;  // the program may have ended the context, and with it what belongs to it
        const auto pinned = reinterpret_cast<gpu::CuAddress>(one->pinned[0]);
        if (current &&
            driver.cuPointerGetAttribute(&type, gpu::cu_pointer_memory_type, pinned) == gpu::cu_success)
            release(driver, *one);
    }
    memory.stagings.clear();
    if (memory.driver) unpin_unused(memory, 0);
}

}  // namespace mpisec::shim
