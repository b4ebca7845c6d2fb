// One GPU: its context, the kernels, a key, and batches that run there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/driver.hpp"
#include "gpu/kernels.hpp"

namespace mpisec::gpu {

/// Code for GPUs, compiled in (images.cpp): cubins of some architectures, and PTX that the driver compiles for any.
struct Image {
    int architecture;  ///< 90: sm_90; 0: PTX
    const void* bytes;
};
std::span<const Image> images();

class Device;

/// The tables of a batch in the GPU's memory.
class Work {
  public:
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

  private:
    friend class Device;
    Work(Device& device, std::uint32_t count) : device_(device), count_(count) {}
    Device& device_;
    std::uint32_t count_;
    CuAddress memory_ = 0;
    CuAddress zeros_ = 0;  ///< sums, which are zero when a batch begins
    std::size_t zero_bytes_ = 0;
    Batch batch_{};
};

class Device {
  public:
    static Result<std::unique_ptr<Device>> open(int ordinal);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const std::string& description() const { return description_; }
    Result<void> set_key(std::span<const std::uint8_t> key);
    Result<CuAddress> allocate(std::size_t bytes);
    Result<void> release(CuAddress address);
    Result<void> copy_in(CuAddress to, const void* from, std::size_t bytes);
    Result<void> copy_out(void* to, CuAddress from, std::size_t bytes);
    Result<std::unique_ptr<Work>> prepare(std::vector<Packet> packets);
    /// Starts it on one of some streams, after what was started there before. The key is that of the last set_key().
    Result<void> run(Work& work, Task task, unsigned stream);
    Result<void> wait();
    Result<std::vector<std::uint32_t>> genuine(Work& work);

  private:
    friend class Work;
    static constexpr unsigned streams = 32;
    Device(const Driver& driver, CuDevice device) : driver_(driver), device_(device) {}
    Result<void> start();
    Result<void> load_kernels();
    Result<CuFunction> find(const Kernel& kernel);
    Result<void> launch(const Kernel& kernel, Batch& batch, CuStream stream);
    Result<void> checked(CuResult error, const char* what) const;

    Driver driver_;
    CuDevice device_;
    CuContext context_ = nullptr;
    CuModule module_ = nullptr;
    std::vector<CuFunction> functions_;  ///< in the order of all_kernels
    bool multiplies_matrices_ = false;
    std::vector<CuStream> streams_;
    CuAddress key_ = 0;
    unsigned rounds_ = 0;
    std::vector<std::pair<CuAddress, std::size_t>> sizes_;  ///< of what was allocated
    std::string description_;
};

}  // namespace mpisec::gpu
