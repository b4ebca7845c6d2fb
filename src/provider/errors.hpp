// Errors as OpenSSL's own ciphers report them: in the error queue of the program's libcrypto, with the reasons
// of OpenSSL's providers, which programs compare and print.
#pragma once

#include <openssl/core.h>
#include <openssl/core_dispatch.h>
#include <openssl/proverr.h>

namespace mpisec::provider {

/// One loading of the provider into a library context; every context of a cipher points to its own. A process may
/// have several libcrypto, each of which loads it.
struct Instance {
    Instance(const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH* core_functions);

    const OSSL_CORE_HANDLE* core;
    OSSL_FUNC_core_new_error_fn* new_error = nullptr;
    OSSL_FUNC_core_vset_error_fn* vset_error = nullptr;
};

/// Puts PROV_R_… into the queue. Returns 0, which is what the failed function returns.
int raise(const Instance* instance, int reason);

}  // namespace mpisec::provider
