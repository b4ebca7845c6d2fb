// Errors as OpenSSL's own ciphers report them: in the error queue of the program's libcrypto, with the reasons
// of OpenSSL's providers, which programs compare and print.
#pragma once

#include <openssl/core.h>
#include <openssl/proverr.h>

namespace mpisec::provider {

/// One loading of the provider into a library context; every context of a cipher points to its own.
struct Instance {
    const OSSL_CORE_HANDLE* core = nullptr;
};

/// What the core offers for errors; the same for every instance. Called once per loading.
void take_error_functions(const OSSL_DISPATCH* core_functions);

/// Puts PROV_R_… into the queue. Returns 0, which is what the failed function returns.
int raise(const Instance* instance, int reason);

}  // namespace mpisec::provider
