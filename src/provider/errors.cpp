#include "provider/errors.hpp"

#include <openssl/err.h>

#include <cstdarg>
#include <cstdint>

namespace mpisec::provider {
namespace {

// NOLINTNEXTLINE(cert-dcl50-cpp): OpenSSL's function wants a list of arguments, and only a variadic function can make one
void set_error(const Instance* instance, std::uint32_t reason, ...) {
    va_list none;
    va_start(none, reason);
    instance->vset_error(instance->core, reason, nullptr, none);
    va_end(none);
}

}  // namespace

Instance::Instance(const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH* core_functions) : core(handle) {
    for (; core_functions->function_id != 0; ++core_functions) {
        if (core_functions->function_id == OSSL_FUNC_CORE_NEW_ERROR)
            new_error = OSSL_FUNC_core_new_error(core_functions);
        if (core_functions->function_id == OSSL_FUNC_CORE_VSET_ERROR)
            vset_error = OSSL_FUNC_core_vset_error(core_functions);
    }
}

int raise(const Instance* instance, int reason) {
    if (instance->new_error && instance->vset_error) {
        instance->new_error(instance->core);
        set_error(instance, static_cast<std::uint32_t>(ERR_PACK(ERR_LIB_PROV, 0, reason)));
    }
    return 0;
}

}  // namespace mpisec::provider
