// libmpisec-gpu.so: the table of library.h over Device.
#include "gpu/library.h"

#include <cstring>

#include "gpu/device.hpp"

namespace {

using namespace mpisec::gpu;

thread_local std::string last_error;

Device& device(void* gpu) {
    return *static_cast<Device*>(gpu);
}

template <class Value>
bool good(const mpisec::Result<Value>& result) {
    if (!result) last_error = result.error().message;
    return result.has_value();
}
int code(bool went_well) {
    return went_well ? 0 : -1;
}

void* open_device(int ordinal) {
    auto opened = Device::open(ordinal);
    return good(opened) ? opened->release() : nullptr;
}

int allocate(void* gpu, std::size_t bytes, std::uint64_t* address) {
    const auto given = device(gpu).allocate(bytes);
    if (good(given)) *address = *given;
    return code(given.has_value());
}

Packet packet_of(const mpisec_gpu_packet& one) {
    Packet packet{reinterpret_cast<const std::uint8_t*>(one.from),
                  reinterpret_cast<std::uint8_t*>(one.to),
                  reinterpret_cast<const std::uint8_t*>(one.ad),
                  reinterpret_cast<std::uint8_t*>(one.tag),
                  one.bytes,
                  one.ad_bytes,
                  one.counter,
                  {},
                  0,
                  0};
    std::memcpy(packet.nonce, one.nonce, nonce_bytes);
    return packet;
}

void* prepare(void* gpu, const mpisec_gpu_packet* packets, std::size_t count) {
    std::vector<Packet> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(packet_of(packets[i]));
    auto work = device(gpu).prepare(std::move(all));
    return good(work) ? work->release() : nullptr;
}

int run(void* gpu, void* batch, int what, unsigned stream) {
    const Task task = what == MPISEC_GPU_COUNTER_MODE ? Task::counter_mode
                      : what == MPISEC_GPU_SEAL       ? Task::seal
                                                      : Task::open;
    return code(good(device(gpu).run(*static_cast<Work*>(batch), task, stream)));
}

int genuine(void* gpu, void* batch, std::uint32_t* of_each) {
    const auto found = device(gpu).genuine(*static_cast<Work*>(batch));
    if (good(found)) std::memcpy(of_each, found->data(), found->size() * sizeof(std::uint32_t));
    return code(found.has_value());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const mpisec_gpu_table mpisec_gpu_table = {
    MPISEC_GPU_VERSION,
    [] { return last_error.c_str(); },
    open_device,
    [](void* gpu) { delete static_cast<Device*>(gpu); },
    [](void* gpu) { return device(gpu).description().c_str(); },
    [](void* gpu, const std::uint8_t* key, std::size_t bytes) {
        return code(good(device(gpu).set_key({key, bytes})));
    },
    allocate,
    [](void* gpu, std::uint64_t address) { return code(good(device(gpu).release(address))); },
    [](void* gpu, std::uint64_t to, const void* from, std::size_t bytes) {
        return code(good(device(gpu).copy_in(to, from, bytes)));
    },
    [](void* gpu, void* to, std::uint64_t from, std::size_t bytes) {
        return code(good(device(gpu).copy_out(to, from, bytes)));
    },
    prepare,
    run,
    [](void* gpu) { return code(good(device(gpu).wait())); },
    genuine,
    [](void*, void* batch) { delete static_cast<Work*>(batch); },
};
