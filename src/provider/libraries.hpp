// The crypto libraries that serve the provider: the plug-ins that are installed, and OpenSSL itself.
#pragma once

#include <openssl/types.h>

#include <string>
#include <vector>

#include "provider/plugin.h"

namespace mpisec::provider {

inline constexpr std::size_t max_libraries = 5;

/// Opened once, in the order of their names; the last two are made of the others, and OpenSSL.
const std::vector<const mpisec_cipher_plugin*>& libraries();

/// Index in libraries() of GCM on several threads (shared_gcm.cpp).
inline std::size_t shared_gcm_index() {
    return libraries().size() - 2;
}
const mpisec_cipher_plugin& shared_gcm_library();

/// Index in libraries() of OpenSSL.
inline std::size_t openssl_index() {
    return libraries().size() - 1;
}

/// OpenSSL's default provider as one of the libraries, in a library context of its own that reads no
/// configuration: what the program's configuration names is this provider again.
const mpisec_cipher_plugin& openssl_library();

/// "AES-128-CBC" in that context. Null when it has none.
EVP_CIPHER* openssl_cipher(int mode, std::size_t key_n);

/// The files of the plug-ins with their sizes and times: what a remembered choice was measured with.
std::string installed_plugins();

}  // namespace mpisec::provider
