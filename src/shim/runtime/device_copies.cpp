#include "shim/runtime/device_copies.hpp"

#include <algorithm>
#include <mutex>

#include "shim/process/process.hpp"
#include "shim/runtime/device_memory.hpp"

namespace mpisec::shim {
namespace {

Staging* staging_for(gpu::CuAddress device) {
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    return staging_of_address(memory, device);
}

/// Calls `use(driver)` in the context of the staging, while no other thread uses it.
template <class Use>
gpu::CuResult with_driver(const Staging& staging, Use use) {
    DeviceMemory& memory = *process.device_memory;
    std::lock_guard lock(memory.mutex);
    const gpu::CurrentContext current(*memory.driver, staging.context);
    return current ? use(*memory.driver) : gpu::cu_invalid_context;
}

/// Reports what is wrong, if anything.
bool went_well(gpu::CuResult result) {
    return result == gpu::cu_success || driver_failed(*process.device_memory->driver, result,
                                                      "copy a part of a message from or to a GPU's memory");
}

}  // namespace

CopiesFromDevice::CopiesFromDevice(std::uint8_t* host, const void* device, std::size_t bytes) {
    const auto address = reinterpret_cast<gpu::CuAddress>(device);
    staging_ = staging_for(address);
    failed_ = !staging_ || !went_well(with_driver(*staging_, [&](const gpu::Driver& driver) {
        gpu::CuResult result = gpu::cu_success;
        std::size_t begin = 0, length = first_piece;
        while (begin < bytes && result == gpu::cu_success) {
            const std::size_t end = std::min(begin + length, bytes);
            result = start_piece(driver, host + begin, address + begin, end - begin, end);
            begin = end;
            length = std::min(2 * length, longest_piece);
        }
        return result;
    }));
}

gpu::CuResult CopiesFromDevice::start_piece(const gpu::Driver& driver, std::uint8_t* to, gpu::CuAddress from,
                                            std::size_t bytes, std::size_t end) {
    auto& unused = staging_->unused_events;
    if (unused.empty()) {
        gpu::CuEvent made{};
        if (const gpu::CuResult error = driver.cuEventCreate(&made, gpu::cu_event_without_time);
            error != gpu::cu_success)
            return error;
        unused.push_back(made);
    }
    if (const gpu::CuResult error = driver.cuMemcpyDtoHAsync_v2(to, from, bytes, staging_->from_device);
        error != gpu::cu_success)
        return error;
    pieces_.push_back({unused.back(), end});
    unused.pop_back();
    return driver.cuEventRecord(pieces_.back().copied, staging_->from_device);
}

CopiesFromDevice::~CopiesFromDevice() {
    if (!staging_) return;
    with_driver(*staging_, [&](const gpu::Driver& driver) {
        if (next_ < pieces_.size()) driver.cuStreamSynchronize(staging_->from_device);
        for (const Piece& one : pieces_) staging_->unused_events.push_back(one.copied);
        return gpu::cu_success;
    });
}

void CopiesFromDevice::look() {
    if (failed_) return;
    const gpu::CuResult result = with_driver(*staging_, [&](const gpu::Driver& driver) {
        while (next_ < pieces_.size()) {
            const gpu::CuResult copied = driver.cuEventQuery(pieces_[next_].copied);
            if (copied != gpu::cu_success) return copied;
            arrived_ = pieces_[next_++].end;
        }
        return gpu::cu_success;
    });
    failed_ = result != gpu::cu_not_ready && !went_well(result);
}

bool CopiesFromDevice::wait_for(std::size_t bytes) {
    while (bytes > arrived_ && !failed_)
        failed_ = !went_well(with_driver(*staging_, [&](const gpu::Driver& driver) {
            const gpu::CuResult copied = driver.cuEventSynchronize(pieces_[next_].copied);
            if (copied == gpu::cu_success) arrived_ = pieces_[next_++].end;
            return copied;
        }));
    return !failed_;
}

CopiesToDevice::CopiesToDevice(void* device, const std::uint8_t* host, std::size_t bytes)
    : host_(host),
      device_(reinterpret_cast<gpu::CuAddress>(device)),
      // Many calls of the driver would take as long as the copies that they hide, and the piece left at the end hides nothing.
      piece_(std::clamp<std::size_t>(bytes / 8, std::size_t{256} << 10, std::size_t{4} << 20)) {}

CopiesToDevice::~CopiesToDevice() {
    wait();
}

void CopiesToDevice::start(std::size_t bytes) {
    if (failed_ || bytes <= started_) return;
    if (!staging_) staging_ = staging_for(device_);
    failed_ = !staging_ || !went_well(with_driver(*staging_, [&](const gpu::Driver& driver) {
        return driver.cuMemcpyHtoDAsync_v2(device_ + started_, host_ + started_, bytes - started_,
                                           staging_->to_device);
    }));
    if (failed_) return;
    started_ = bytes;
    under_way_ = true;
}

void CopiesToDevice::wait() {
    if (!under_way_) return;
    under_way_ = false;
    const bool good = went_well(with_driver(*staging_, [&](const gpu::Driver& driver) {
        return driver.cuStreamSynchronize(staging_->to_device);
    }));
    failed_ = failed_ || !good;
}

bool CopiesToDevice::finish(std::size_t bytes) {
    start(bytes);
    wait();
    return !failed_;
}

}  // namespace mpisec::shim
