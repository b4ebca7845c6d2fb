#include "shim/sockets/callers.hpp"

#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "shim/process/process.hpp"

namespace mpisec::shim {
namespace {

constexpr std::array<std::string_view, 4> transports = {"mca_btl_tcp", "libopen-pal", "libuct", "libucs"};

Dl_info object_of(const void* address) {
    Dl_info info{};
    if (!dladdr(address, &info)) info = {};
    return info;
}

std::string_view file_name(const Dl_info& object) {
    const std::string_view path = object.dli_fname ? object.dli_fname : "";
    return path.substr(path.rfind('/') + 1);
}

/// "libuct.so.0", and "libuct-1a2b3c4d.so.0" of a Python wheel.
bool is_named(std::string_view file, std::string_view library) {
    return file.starts_with(library) && file.size() > library.size() &&
           (file[library.size()] == '.' || file[library.size()] == '-');
}

struct Walk {
    const void* of_interceptor;  ///< its object
    bool inside = false;
    const void* caller = nullptr;
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* data) {
    auto& walk = *static_cast<Walk*>(data);
    const auto* address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
    if (object_of(address).dli_fbase == walk.of_interceptor) {
        walk.inside = true;
        return _URC_NO_REASON;
    }
    if (!walk.inside) return _URC_NO_REASON;
    walk.caller = address;
    return _URC_END_OF_STACK;
}

bool has_sanitizer() {
    return std::ranges::any_of(std::array{"__asan_init", "__tsan_init", "__msan_init"},
                               [](const char* name) { return dlsym(RTLD_DEFAULT, name) != nullptr; });
}

/// A sanitizer's runtime, in the program or in a library, calls in place of the code that has called it: finds that code.
const void* behind_sanitizer(const void* caller) {
    if (process.sanitized < 0) process.sanitized = has_sanitizer();
    if (process.sanitized == 0) return caller;
    Walk walk{object_of(caller).dli_fbase};
    _Unwind_Backtrace(step, &walk);
    return walk.caller;
}

}  // namespace

bool called_by_transport(const void* caller, bool every) {
    const auto speaks = [every](std::string_view file) {
        return std::ranges::any_of(transports, [&](std::string_view each) { return is_named(file, each); }) ||
               (every && (file.starts_with("libfabric") || file.find("-fi.so") != file.npos));
    };
    if (speaks(file_name(object_of(caller)))) return true;
    const void* behind = behind_sanitizer(caller);
    return behind != caller && speaks(file_name(object_of(behind)));
}

}  // namespace mpisec::shim
