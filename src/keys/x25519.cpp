#include "keys/x25519.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <memory>
#include <utility>

namespace mpisec::keys {
namespace {

struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Context = std::unique_ptr<EVP_PKEY_CTX, Free>;

Key private_key(const Secret& secret) {
    initialize_openssl();
    return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret.data(), secret_bytes));
}

}  // namespace

void initialize_openssl() {
    static const int done =
        OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
    static_cast<void>(done);
}

Result<KeyPair> x25519_key_pair(Secret secret) {
    Key key = private_key(secret);
    KeyPair pair{std::move(secret), {}};
    std::size_t n = pair.public_key.size();
    if (!key || EVP_PKEY_get_raw_public_key(key.get(), pair.public_key.data(), &n) != 1) {
        return fail("OpenSSL could not make an X25519 key pair.");
    }
    return pair;
}

Result<Secret> x25519(const KeyPair& ours, const PublicKey& theirs) {
    Key key = private_key(ours.secret);
    Key peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, theirs.data(), theirs.size()));
    Context context(key ? EVP_PKEY_CTX_new(key.get(), nullptr) : nullptr);
    Secret shared;
    std::size_t n = secret_bytes;
    // OpenSSL refuses to derive the all-zero result itself.
    if (!peer || !context || EVP_PKEY_derive_init(context.get()) != 1 ||
        EVP_PKEY_derive_set_peer(context.get(), peer.get()) != 1 ||
        EVP_PKEY_derive(context.get(), shared.data(), &n) != 1 || n != secret_bytes) {
        return fail("The X25519 public key that arrived is not valid.");
    }
    return shared;
}

}  // namespace mpisec::keys
