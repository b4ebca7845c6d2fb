// The CUDA driver, libcuda.so.1, as MPIsec uses it: found at run time, so that nothing of CUDA is needed to build
// MPIsec or to run it without a GPU. The declarations are our own, after NVIDIA's documentation of the driver
// API (versions since CUDA 11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace mpisec::gpu {

using CuResult = int;
using CuDevice = int;
using CuAddress = std::uint64_t;
using CuContext = struct CuContextState*;
using CuEvent = struct CuEventState*;
using CuModule = struct CuModuleState*;
using CuFunction = struct CuFunctionState*;
using CuStream = struct CuStreamState*;

inline constexpr CuResult cu_success = 0, cu_invalid_context = 201, cu_not_ready = 600;

// CUpointer_attribute, CUmemorytype, CUdevice_attribute, CUstream_flags, CUevent_flags
inline constexpr int cu_pointer_context = 1, cu_pointer_memory_type = 2, cu_pointer_is_managed = 8,
                     cu_pointer_device = 9;
inline constexpr unsigned cu_memory_of_device = 2;
inline constexpr int cu_device_multiprocessors = 16, cu_device_major = 75, cu_device_minor = 76;
inline constexpr unsigned cu_stream_non_blocking = 1, cu_event_without_time = 2;
inline constexpr unsigned cu_pinned_for_all_contexts = 1;  // CU_MEMHOSTREGISTER_PORTABLE

// NAME(name in the library, parameters)
#define MPISEC_CUDA_PROCEDURES(NAME)                                                                   \
    NAME(cuInit, unsigned flags)                                                                       \
    NAME(cuGetErrorString, CuResult error, const char** text)                                          \
    NAME(cuDeviceGetCount, int* count)                                                                 \
    NAME(cuDeviceGet, CuDevice* device, int ordinal)                                                   \
    NAME(cuDeviceGetName, char* name, int bytes, CuDevice device)                                      \
    NAME(cuDeviceGetAttribute, int* value, int attribute, CuDevice device)                             \
    NAME(cuDevicePrimaryCtxRetain, CuContext* context, CuDevice device)                                \
    NAME(cuDevicePrimaryCtxRelease_v2, CuDevice device)                                                \
    NAME(cuCtxGetCurrent, CuContext* context)                                                          \
    NAME(cuCtxPushCurrent_v2, CuContext context)                                                       \
    NAME(cuCtxPopCurrent_v2, CuContext* context)                                                       \
    NAME(cuModuleLoadData, CuModule* module, const void* image)                                        \
    NAME(cuModuleUnload, CuModule module)                                                              \
    NAME(cuModuleGetFunction, CuFunction* function, CuModule module, const char* name)                 \
    NAME(cuLaunchKernel, CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,       \
         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CuStream stream, \
         void** parameters, void** extra)                                                              \
    NAME(cuMemAlloc_v2, CuAddress* address, std::size_t bytes)                                         \
    NAME(cuMemFree_v2, CuAddress address)                                                              \
    NAME(cuMemHostAlloc, void** memory, std::size_t bytes, unsigned flags)                             \
    NAME(cuMemFreeHost, void* memory)                                                                  \
    NAME(cuMemHostRegister_v2, void* memory, std::size_t bytes, unsigned flags)                        \
    NAME(cuMemHostUnregister, void* memory)                                                            \
    NAME(cuMemcpyHtoDAsync_v2, CuAddress to, const void* from, std::size_t bytes, CuStream stream)     \
    NAME(cuMemcpyDtoHAsync_v2, void* to, CuAddress from, std::size_t bytes, CuStream stream)           \
    NAME(cuMemsetD8Async, CuAddress to, unsigned char value, std::size_t bytes, CuStream stream)       \
    NAME(cuStreamCreate, CuStream* stream, unsigned flags)                                             \
    NAME(cuStreamDestroy_v2, CuStream stream)                                                          \
    NAME(cuStreamSynchronize, CuStream stream)                                                         \
    NAME(cuEventCreate, CuEvent* event, unsigned flags)                                                \
    NAME(cuEventDestroy_v2, CuEvent event)                                                             \
    NAME(cuEventRecord, CuEvent event, CuStream stream)                                                \
    NAME(cuEventQuery, CuEvent event)                                                                  \
    NAME(cuEventSynchronize, CuEvent event)                                                            \
    NAME(cuPointerGetAttribute, void* value, int attribute, CuAddress address)

/// The procedures; all there, or there is no Driver.
struct Driver {
#define MPISEC_CUDA_POINTER(name, ...) CuResult (*name)(__VA_ARGS__);
    MPISEC_CUDA_PROCEDURES(MPISEC_CUDA_POINTER)
#undef MPISEC_CUDA_POINTER

    /// What an error code means, in the driver's words.
    std::string text(CuResult error) const;
};

/// Opens libcuda.so.1; `only_if_loaded`: where the program has it in the process already.
Result<Driver> find_driver(bool only_if_loaded);

/// Makes a context current for as long as this object lives.
class CurrentContext {
  public:
    CurrentContext(const Driver& driver, CuContext context)
        : driver_(driver), good_(driver.cuCtxPushCurrent_v2(context) == cu_success) {}
    ~CurrentContext() {
        CuContext previous;
        if (good_) driver_.cuCtxPopCurrent_v2(&previous);
    }
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    explicit operator bool() const { return good_; }

  private:
    const Driver& driver_;
    bool good_;
};

}  // namespace mpisec::gpu
