#include "gpu/device.hpp"

#include <string.h>

#include <algorithm>
#include <cstddef>

#include "gpu/key.hpp"

namespace mpisec::gpu {
namespace {

constexpr unsigned threads_per_block = warps_of_block * lanes_of_warp;  // as kernels.cu says

/// Tables one behind the other, each on a multiple of 256 bytes.
class Tables {
  public:
    template <class T>
    std::size_t add(std::size_t count) {
        const std::size_t at = bytes_;
        bytes_ += (count * sizeof(T) + 255) / 256 * 256;
        return at;
    }
    std::size_t bytes() const { return bytes_; }

  private:
    std::size_t bytes_ = 0;
};

template <class T>
T* pointer(CuAddress address) {
    return reinterpret_cast<T*>(address);
}

}  // namespace

Work::~Work() {
    if (memory_) (void)device_.release(memory_);
}

Result<void> Device::checked(CuResult error, const char* what) const {
    if (error == cu_success) return {};
    return fail(std::string("The CUDA driver could not ") + what + ": " + driver_.text(error) + ".");
}

Result<std::unique_ptr<Device>> Device::open(int ordinal) {
    Result<Driver> driver = find_driver(false);
    if (!driver) return fail(driver.error().message + ".");
    int count = 0;
    CuDevice device = 0;
    if (const CuResult error = driver->cuInit(0); error != cu_success)
        return fail("The CUDA driver of this machine does not start: " + driver->text(error) + ".");
    if (driver->cuDeviceGetCount(&count) != cu_success || ordinal < 0 || ordinal >= count ||
        driver->cuDeviceGet(&device, ordinal) != cu_success)
        return fail("There is no GPU " + std::to_string(ordinal) + " on this machine: the driver has " +
                    std::to_string(count) + ".");
    std::unique_ptr<Device> opened(new Device(*driver, device));
    if (Result<void> started = opened->start(); !started) return fail(started.error().message);
    return opened;
}

Result<void> Device::start() {
    if (auto good = checked(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "give a context"); !good)
        return good;
    const CurrentContext current(driver_, context_);
    for (unsigned i = 0; i < streams; ++i) {
        CuStream stream = nullptr;
        if (auto good = checked(driver_.cuStreamCreate(&stream, cu_stream_non_blocking), "give a stream");
            !good)
            return good;
        streams_.push_back(stream);
    }
    if (auto good = load_kernels(); !good) return good;
    Result<CuAddress> key = allocate(sizeof(KeyMaterial));
    if (!key) return fail(key.error().message);
    key_ = *key;
    return {};
}

Result<void> Device::load_kernels() {
    int major = 0, minor = 0, multiprocessors = 0;
    driver_.cuDeviceGetAttribute(&major, cu_device_major, device_);
    driver_.cuDeviceGetAttribute(&minor, cu_device_minor, device_);
    driver_.cuDeviceGetAttribute(&multiprocessors, cu_device_multiprocessors, device_);
    CuResult error = -1;
    std::string code;
    for (const Image& image : images()) {
        // A cubin runs on its own architecture and later minor ones; a driver that is older than it refuses it.
        const int architecture = 10 * major + minor, own = image.architecture;
        if (own != 0 && (own / 10 != major || own > architecture)) continue;
        error = driver_.cuModuleLoadData(&module_, image.bytes);
        code = own ? "code for sm_" + std::to_string(own) : "PTX, compiled by the driver";
        if (error == cu_success) break;
    }
    if (auto good = checked(error, "load the kernels"); !good) return good;
    for (const Kernel& one : all_kernels) {
        CuFunction function = nullptr;
        const CuResult found = driver_.cuModuleGetFunction(&function, module_, one.name);
        functions_.push_back(found == cu_success ? function : nullptr);
        if (one.name == kernel::hash_windows.name) {  // not for every GPU (kernels.cu)
            multiplies_matrices_ = found == cu_success;
        } else if (auto good = checked(found, "find a kernel"); !good) {
            return good;
        }
    }
    char name[256] = {};
    driver_.cuDeviceGetName(name, sizeof name - 1, device_);
    description_ = std::string(name) + " (compute capability " + std::to_string(major) + "." +
                   std::to_string(minor) + ", " + std::to_string(multiprocessors) + " multiprocessors; " +
                   code + ")";
    return {};
}

Device::~Device() {
    if (!context_) return;
    {
        const CurrentContext current(driver_, context_);
        (void)wait();
        while (!sizes_.empty()) (void)release(sizes_.back().first);
        if (module_) driver_.cuModuleUnload(module_);
        for (CuStream stream : streams_) driver_.cuStreamDestroy_v2(stream);
    }
    driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

Result<CuAddress> Device::allocate(std::size_t bytes) {
    const CurrentContext current(driver_, context_);
    CuAddress address = 0;
    if (auto good = checked(driver_.cuMemAlloc_v2(&address, std::max<std::size_t>(bytes, 1)), "give memory");
        !good)
        return fail(good.error().message);
    sizes_.emplace_back(address, bytes);
    return address;
}

Result<void> Device::release(CuAddress address) {
    const CurrentContext current(driver_, context_);
    const auto found = std::ranges::find(sizes_, address, [](const auto& one) { return one.first; });
    if (found == sizes_.end()) return fail("This memory of the GPU was not allocated here.");
    driver_.cuMemsetD8Async(address, 0, found->second, streams_[0]);  // keys and plaintext
    (void)wait();
    sizes_.erase(found);
    return checked(driver_.cuMemFree_v2(address), "take memory back");
}

Result<void> Device::copy_in(CuAddress to, const void* from, std::size_t bytes) {
    const CurrentContext current(driver_, context_);
    if (auto good = checked(driver_.cuMemcpyHtoDAsync_v2(to, from, bytes, streams_[0]), "copy to the GPU");
        !good)
        return good;
    return checked(driver_.cuStreamSynchronize(streams_[0]), "copy to the GPU");
}

Result<void> Device::copy_out(void* to, CuAddress from, std::size_t bytes) {
    const CurrentContext current(driver_, context_);
    if (auto good = checked(driver_.cuMemcpyDtoHAsync_v2(to, from, bytes, streams_[0]), "copy from the GPU");
        !good)
        return good;
    return checked(driver_.cuStreamSynchronize(streams_[0]), "copy from the GPU");
}

Result<void> Device::set_key(std::span<const std::uint8_t> key) {
    const unsigned rounds = rounds_of(key.size());
    if (rounds == 0)
        return fail("A key of AES on the GPU has 16 or 32 bytes, not " + std::to_string(key.size()) + ".");
    if (auto good = wait(); !good) return good;
    const auto material = std::make_unique<KeyMaterial>();
    expand_key(key, *material);
    Result<void> copied = copy_in(key_, material.get(), sizeof *material);
    explicit_bzero(material.get(), sizeof *material);
    if (copied) rounds_ = rounds;
    return copied;
}

Result<std::unique_ptr<Work>> Device::prepare(std::vector<Packet> packets) {
    const Result<Extent> extent = lay_out(packets);
    if (!extent) return fail(extent.error().message);
    Tables tables;
    const std::size_t count = packets.size(), at_packets = tables.add<Packet>(count);
    const std::size_t at_masks = tables.add<Block>(count), at_genuine = tables.add<std::uint32_t>(count);
    const std::size_t at_sums = tables.add<Element>(count),
                      at_chunks = tables.add<Element>(extent->chunks + 1);
    std::unique_ptr<Work> work(new Work(*this, static_cast<std::uint32_t>(count)));
    const Result<CuAddress> memory = allocate(tables.bytes());
    if (!memory) return fail(memory.error().message);
    work->memory_ = *memory;
    work->zeros_ = *memory + at_sums;
    work->zero_bytes_ = tables.bytes() - at_sums;
    work->batch_ = {pointer<const Packet>(*memory + at_packets),
                    pointer<const std::uint32_t>(key_ + offsetof(KeyMaterial, round_keys)),
                    pointer<const KeyMaterial>(key_),
                    pointer<Block>(*memory + at_masks),
                    pointer<Element>(*memory + at_chunks),
                    pointer<Element>(*memory + at_sums),
                    pointer<std::uint32_t>(*memory + at_genuine),
                    static_cast<std::uint32_t>(count),
                    0,
                    extent->threads,
                    extent->chunks,
                    Task::counter_mode};
    if (auto good = copy_in(*memory + at_packets, packets.data(), count * sizeof(Packet)); !good)
        return fail(good.error().message);
    return work;
}

Result<void> Device::launch(const Kernel& kernel, Batch& batch, CuStream stream) {
    const std::uint32_t threads = kernel.threads(batch);
    if (threads == 0) return {};
    const auto* which = std::ranges::find(all_kernels, std::string_view(kernel.name), &Kernel::name);
    CuFunction function = functions_[static_cast<std::size_t>(which - std::begin(all_kernels))];
    void* parameters[] = {&batch};
    return checked(driver_.cuLaunchKernel(function, (threads + threads_per_block - 1) / threads_per_block, 1,
                                          1, threads_per_block, 1, 1, 0, stream, parameters, nullptr),
                   "start a kernel");
}

Result<void> Device::run(Work& work, Task task, unsigned stream) {
    if (rounds_ == 0) return fail("The GPU has no key yet.");
    const CurrentContext current(driver_, context_);
    CuStream on = streams_[stream % streams];
    work.batch_.rounds = rounds_;
    work.batch_.task = task;
    if (auto good = checked(driver_.cuMemsetD8Async(work.zeros_, 0, work.zero_bytes_, on), "clear memory");
        !good)
        return good;
    const Kernel& hash =
        multiplies_matrices_ && fills_warps(work.batch_) ? kernel::hash_windows : kernel::hash;
    for (const Kernel& kernel : kernels_of(task, hash))
        if (auto good = launch(kernel, work.batch_, on); !good) return good;
    return {};
}

Result<void> Device::wait() {
    const CurrentContext current(driver_, context_);
    for (CuStream stream : streams_)
        if (auto good = checked(driver_.cuStreamSynchronize(stream), "finish what runs on the GPU"); !good)
            return good;
    return {};
}

Result<std::vector<std::uint32_t>> Device::genuine(Work& work) {
    std::vector<std::uint32_t> of_each(work.count_);
    const auto from = reinterpret_cast<CuAddress>(work.batch_.genuine);
    if (auto good = wait(); !good) return fail(good.error().message);
    if (auto good = copy_out(of_each.data(), from, work.count_ * sizeof(std::uint32_t)); !good)
        return fail(good.error().message);
    return of_each;
}

}  // namespace mpisec::gpu
