// libcuda.so.1 without a GPU, for tests. "Device memory" is memory of the host that nobody may touch: a program, or
// an MPI library, that takes its address for the host's faults. Only copies and kernels of this driver lift the
// protection while they run, and kernels run on the host, thread after thread.
//
// FAKE_CUDA_FAIL names a procedure that fails from the start, e.g. cuMemcpyDtoHAsync_v2.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "gpu/driver.hpp"
#include "gpu/kernels.hpp"

struct mpisec::gpu::CuFunctionState {
    const Kernel* kernel;
};

using namespace mpisec::gpu;

namespace {

struct Region {
    std::size_t bytes;
    bool of_device, managed;
};

std::mutex mutex;
std::map<std::uintptr_t, Region> regions;
bool started = false;
CuFunctionState functions[std::size(all_kernels)];
char context_mark, stream_mark, module_mark;
thread_local int contexts = 0;

constexpr CuResult invalid_value = 1, out_of_memory = 2, not_initialized = 3, invalid_context = 201;

bool fails(const char* procedure) {
    const char* named = std::getenv("FAKE_CUDA_FAIL");
    return named && std::string_view(named) == procedure;
}

std::map<std::uintptr_t, Region>::iterator region_of(std::uintptr_t address) {
    auto after = regions.upper_bound(address);
    if (after == regions.begin()) return regions.end();
    const auto found = std::prev(after);
    return address < found->first + found->second.bytes ? found : regions.end();
}

std::size_t pages(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

/// Lifts the protection of all device memory.
class Unprotected {
  public:
    Unprotected() { protect(PROT_READ | PROT_WRITE); }
    ~Unprotected() { protect(PROT_NONE); }

  private:
    static void protect(int how) {
        for (const auto& [address, region] : regions)
            if (region.of_device && !region.managed)
                mprotect(reinterpret_cast<void*>(address), pages(region.bytes), how);
    }
};

CuResult allocate(std::uintptr_t& address, std::size_t bytes, bool of_device, bool managed) {
    if (contexts == 0) return invalid_context;
    const int how = of_device && !managed ? PROT_NONE : PROT_READ | PROT_WRITE;
    void* memory = mmap(nullptr, pages(bytes), how, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return out_of_memory;
    address = reinterpret_cast<std::uintptr_t>(memory);
    regions[address] = {bytes, of_device, managed};
    return cu_success;
}

CuResult give_back(std::uintptr_t address) {
    std::lock_guard lock(mutex);
    const auto found = regions.find(address);
    if (found == regions.end()) return invalid_value;
    munmap(reinterpret_cast<void*>(address), pages(found->second.bytes));
    regions.erase(found);
    return cu_success;
}

bool inside(CuAddress address, std::size_t bytes) {
    const auto found = region_of(address);
    return found != regions.end() && found->second.of_device &&
           address + bytes <= found->first + found->second.bytes;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) CuResult

EXPORT cuInit(unsigned) {
    started = true;
    return cu_success;
}
EXPORT cuGetErrorString(CuResult error, const char** text) {
    *text = error == invalid_value ? "invalid argument" : "an error of the fake driver";
    return cu_success;
}
EXPORT cuDeviceGetCount(int* count) {
    *count = 1;
    return cu_success;
}
EXPORT cuDeviceGet(CuDevice* device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? cu_success : invalid_value;
}
EXPORT cuDeviceGetName(char* name, int bytes, CuDevice) {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
    return cu_success;
}
EXPORT cuDeviceGetAttribute(int* value, int attribute, CuDevice) {
    *value = attribute == cu_device_major ? 9 : attribute == cu_device_minor ? 0 : 1;
    return cu_success;
}
EXPORT cuDevicePrimaryCtxRetain(CuContext* context, CuDevice) {
    *context = reinterpret_cast<CuContext>(&context_mark);
    return cu_success;
}
EXPORT cuDevicePrimaryCtxRelease_v2(CuDevice) {
    return cu_success;
}
EXPORT cuCtxGetCurrent(CuContext* context) {
    *context = contexts > 0 ? reinterpret_cast<CuContext>(&context_mark) : nullptr;
    return cu_success;
}
EXPORT cuCtxPushCurrent_v2(CuContext context) {
    if (context != reinterpret_cast<CuContext>(&context_mark)) return invalid_context;
    ++contexts;
    return cu_success;
}
EXPORT cuCtxPopCurrent_v2(CuContext* context) {
    if (contexts == 0) return invalid_context;
    --contexts;
    *context = reinterpret_cast<CuContext>(&context_mark);
    return cu_success;
}
EXPORT cuModuleLoadData(CuModule* module, const void* image) {
    // A driver that takes no cubin compiles PTX instead.
    if (fails("cubin") && std::memcmp(image, "\177ELF", 4) == 0) return 209;
    *module = reinterpret_cast<CuModule>(&module_mark);
    return std::memcmp(image, "\177ELF", 4) == 0 || std::strstr(static_cast<const char*>(image), ".entry")
               ? cu_success
               : invalid_value;
}
EXPORT cuModuleUnload(CuModule) {
    return cu_success;
}
EXPORT cuModuleGetFunction(CuFunction* function, CuModule, const char* name) {
    for (std::size_t i = 0; i < std::size(all_kernels); ++i) {
        if (std::string_view(all_kernels[i].name) != name) continue;
        functions[i].kernel = &all_kernels[i];
        *function = &functions[i];
        return cu_success;
    }
    return 500;
}
EXPORT cuLaunchKernel(CuFunction function, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                      unsigned, unsigned, CuStream, void** parameters, void**) {
    if (contexts == 0) return invalid_context;
    if (fails("cuLaunchKernel")) return 719;
    std::lock_guard lock(mutex);
    const Unprotected now;
    const Batch batch = *static_cast<const Batch*>(parameters[0]);
    for (unsigned thread = 0; thread < grid * block; ++thread)
        if (thread < function->kernel->threads(batch)) function->kernel->thread(batch, thread);
    return cu_success;
}
EXPORT cuMemAlloc_v2(CuAddress* address, std::size_t bytes) {
    std::lock_guard lock(mutex);
    std::uintptr_t at = 0;
    const CuResult error = allocate(at, bytes, true, false);
    *address = at;
    return error;
}
EXPORT cuMemAllocManaged(CuAddress* address, std::size_t bytes, unsigned) {
    std::lock_guard lock(mutex);
    std::uintptr_t at = 0;
    const CuResult error = allocate(at, bytes, true, true);
    *address = at;
    return error;
}
EXPORT cuMemFree_v2(CuAddress address) {
    return give_back(address);
}
EXPORT cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
    if (fails("cuMemHostAlloc")) return out_of_memory;
    std::lock_guard lock(mutex);
    std::uintptr_t at = 0;
    const CuResult error = allocate(at, bytes, false, false);
    *memory = reinterpret_cast<void*>(at);
    return error;
}
EXPORT cuMemFreeHost(void* memory) {
    return give_back(reinterpret_cast<std::uintptr_t>(memory));
}
EXPORT cuMemHostRegister_v2(void*, std::size_t, unsigned) {
    if (fails("cuMemHostRegister_v2")) return out_of_memory;
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuMemHostUnregister(void*) {
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, std::size_t bytes, CuStream) {
    if (fails("cuMemcpyHtoDAsync_v2")) return 719;
    std::lock_guard lock(mutex);
    if (contexts == 0) return invalid_context;
    if (!inside(to, bytes)) return invalid_value;
    const Unprotected now;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return cu_success;
}
EXPORT cuMemcpyDtoHAsync_v2(void* to, CuAddress from, std::size_t bytes, CuStream) {
    if (fails("cuMemcpyDtoHAsync_v2")) return 719;
    std::lock_guard lock(mutex);
    if (contexts == 0) return invalid_context;
    if (!inside(from, bytes)) return invalid_value;
    const Unprotected now;
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return cu_success;
}
EXPORT cuMemsetD8Async(CuAddress to, unsigned char value, std::size_t bytes, CuStream) {
    std::lock_guard lock(mutex);
    if (contexts == 0 || !inside(to, bytes)) return invalid_value;
    const Unprotected now;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return cu_success;
}
EXPORT cuStreamCreate(CuStream* stream, unsigned) {
    *stream = reinterpret_cast<CuStream>(&stream_mark);
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuStreamDestroy_v2(CuStream) {
    return cu_success;
}
EXPORT cuStreamSynchronize(CuStream) {
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuPointerGetAttribute(void* value, int attribute, CuAddress address) {
    if (!started) return not_initialized;
    std::lock_guard lock(mutex);
    const auto found = region_of(address);
    if (found == regions.end()) return invalid_value;
    const Region& region = found->second;
    if (attribute == cu_pointer_memory_type)
        *static_cast<unsigned*>(value) = region.of_device ? cu_memory_of_device : 1;
    if (attribute == cu_pointer_is_managed) *static_cast<int*>(value) = region.managed;
    if (attribute == cu_pointer_device) *static_cast<int*>(value) = 0;
    if (attribute == cu_pointer_context)
        *static_cast<CuContext*>(value) = reinterpret_cast<CuContext>(&context_mark);
    return cu_success;
}
