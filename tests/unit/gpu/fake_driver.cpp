// libcuda.so.1 without a GPU, for tests. "Device memory" is memory of the host that nobody may touch: a program, or
// an MPI library, that takes its address for the host's faults. Only copies and kernels of this driver lift the
// protection while they run, and kernels run on the host, thread after thread.
//
// Copies happen when somebody waits for them or for what came after them, or asks an event: each question makes one step.
// Until then nothing has been copied, and memory that is given back meanwhile is an error.
//
// FAKE_CUDA_FAIL names a procedure that fails from the start, e.g. cuMemcpyDtoHAsync_v2; with a number, e.g.
// cuMemcpyDtoHAsync_v2:3, from that call on, counted since it was named.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/driver.hpp"
#include "gpu/kernels.hpp"

struct mpisec::gpu::CuFunctionState {
    const Kernel* kernel;
};
struct mpisec::gpu::CuEventState {
    bool reached = true;
};

using namespace mpisec::gpu;

namespace {

struct Region {
    std::size_t bytes;
    bool of_device, managed;
};

/// What a stream still has to do: a copy, or to reach an event.
struct Step {
    std::uintptr_t to, from;
    std::size_t bytes;
    CuEvent event;

    bool touches(std::uintptr_t address, std::size_t n) const {
        return (to < address + n && address < to + bytes) || (from < address + n && address < from + bytes);
    }
};

std::mutex mutex;
std::map<std::uintptr_t, Region> regions;
std::map<std::uintptr_t, std::size_t> registered;  ///< memory of the host
std::deque<Step> steps;                            ///< of all streams
bool started = false;
CuFunctionState functions[std::size(all_kernels)];
char context_mark, stream_mark, module_mark;
thread_local int contexts = 0;

constexpr CuResult invalid_value = 1, out_of_memory = 2, not_initialized = 3,
                   invalid_context = cu_invalid_context;

bool fails(const char* procedure) {
    static std::mutex counting;
    static std::string counted;
    static long calls = 0;
    const char* named = std::getenv("FAKE_CUDA_FAIL");
    if (!named) return false;
    const std::string_view wanted(named), name = wanted.substr(0, wanted.find(':'));
    if (name != procedure) return false;
    std::lock_guard lock(counting);
    if (counted != wanted) {
        counted = wanted;
        calls = 0;
    }
    return ++calls >= (name == wanted ? 1 : std::atol(named + name.size() + 1));
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

void make_step() {
    const Step step = steps.front();
    steps.pop_front();
    if (step.event) {
        step.event->reached = true;
        return;
    }
    const Unprotected now;
    std::memcpy(reinterpret_cast<void*>(step.to), reinterpret_cast<const void*>(step.from), step.bytes);
}
void make_all_steps() {
    while (!steps.empty()) make_step();
}
/// What is not done is never done: so it is after an error of a copy.
CuResult give_up() {
    std::lock_guard lock(mutex);
    for (const Step& step : steps)
        if (step.event) step.event->reached = true;
    steps.clear();
    return 719;
}
/// Memory that a copy still needs.
bool is_needed(std::uintptr_t address, std::size_t bytes) {
    for (const Step& step : steps)
        if (step.touches(address, bytes)) return true;
    return false;
}

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
    if (found == regions.end() || is_needed(address, found->second.bytes)) return invalid_value;
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
    make_all_steps();
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
EXPORT cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
    if (fails("cuMemHostRegister_v2")) return out_of_memory;
    std::lock_guard lock(mutex);
    if (contexts == 0) return invalid_context;
    registered[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    return cu_success;
}
EXPORT cuMemHostUnregister(void* memory) {
    std::lock_guard lock(mutex);
    const auto found = registered.find(reinterpret_cast<std::uintptr_t>(memory));
    if (contexts == 0 || found == registered.end()) return invalid_context;
    if (is_needed(found->first, found->second)) std::abort();
    registered.erase(found);
    return cu_success;
}
EXPORT cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, std::size_t bytes, CuStream) {
    if (fails("cuMemcpyHtoDAsync_v2")) return 719;
    std::lock_guard lock(mutex);
    if (contexts == 0) return invalid_context;
    if (!inside(to, bytes)) return invalid_value;
    steps.push_back({to, reinterpret_cast<std::uintptr_t>(from), bytes, nullptr});
    return cu_success;
}
EXPORT cuMemcpyDtoHAsync_v2(void* to, CuAddress from, std::size_t bytes, CuStream) {
    if (fails("cuMemcpyDtoHAsync_v2")) return 719;
    std::lock_guard lock(mutex);
    if (contexts == 0) return invalid_context;
    if (!inside(from, bytes)) return invalid_value;
    steps.push_back({reinterpret_cast<std::uintptr_t>(to), from, bytes, nullptr});
    return cu_success;
}
EXPORT cuMemsetD8Async(CuAddress to, unsigned char value, std::size_t bytes, CuStream) {
    std::lock_guard lock(mutex);
    if (contexts == 0 || !inside(to, bytes)) return invalid_value;
    make_all_steps();
    const Unprotected now;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return cu_success;
}
EXPORT cuStreamCreate(CuStream* stream, unsigned) {
    if (fails("cuStreamCreate")) return out_of_memory;
    *stream = reinterpret_cast<CuStream>(&stream_mark);
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuStreamDestroy_v2(CuStream) {
    return cu_success;
}
EXPORT cuStreamSynchronize(CuStream) {
    if (fails("cuStreamSynchronize")) return give_up();
    std::lock_guard lock(mutex);
    make_all_steps();
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuEventCreate(CuEvent* event, unsigned) {
    *event = new CuEventState;
    return contexts > 0 ? cu_success : invalid_context;
}
EXPORT cuEventDestroy_v2(CuEvent event) {
    delete event;
    return cu_success;
}
EXPORT cuEventRecord(CuEvent event, CuStream) {
    if (fails("cuEventRecord")) return 719;
    std::lock_guard lock(mutex);
    event->reached = false;
    steps.push_back({0, 0, 0, event});
    return cu_success;
}
EXPORT cuEventQuery(CuEvent event) {
    if (fails("cuEventQuery")) return give_up();
    std::lock_guard lock(mutex);
    if (!event->reached) make_step();
    return event->reached ? cu_success : cu_not_ready;
}
EXPORT cuEventSynchronize(CuEvent event) {
    if (fails("cuEventSynchronize")) return give_up();
    std::lock_guard lock(mutex);
    while (!event->reached) make_step();
    return cu_success;
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
