#include "gpu/driver.hpp"

#include <dlfcn.h>

namespace mpisec::gpu {

std::string Driver::text(CuResult error) const {
    const char* words = nullptr;
    const std::string number = "error " + std::to_string(error);
    return cuGetErrorString(error, &words) == cu_success && words ? number + ", " + words : number;
}

Result<Driver> find_driver(bool only_if_loaded) {
    void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | (only_if_loaded ? RTLD_NOLOAD : 0));
    if (!library) {
        const char* why = dlerror();
        return fail(std::string("There is no CUDA driver on this machine (libcuda.so.1): ") +
                    (why ? why : "not found"));
    }
    Driver driver{};
    const char* missing = nullptr;
#define MPISEC_CUDA_FIND(name, ...)                                               \
    driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, #name)); \
    if (!driver.name) missing = #name;
    MPISEC_CUDA_PROCEDURES(MPISEC_CUDA_FIND)
#undef MPISEC_CUDA_FIND
    if (!missing) return driver;  // stays loaded
    dlclose(library);
    return fail(std::string("The CUDA driver of this machine lacks ") + missing +
                ": it is older than CUDA 11. Update the driver.");
}

}  // namespace mpisec::gpu
