#include "keys/x25519.hpp"

#include <sodium.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace mpisec::keys {

void initialize_sodium() {
    if (sodium_init() < 0) {
        std::fputs("mpisec: libsodium could not be set up.\n", stderr);
        std::abort();
    }
}

KeyPair x25519_key_pair(Secret secret) {
    initialize_sodium();
    KeyPair pair{std::move(secret), {}};
    crypto_scalarmult_curve25519_base(pair.public_key.data(), pair.secret.data());
    return pair;
}

Result<Secret> x25519(const KeyPair& ours, const PublicKey& theirs) {
    initialize_sodium();
    Secret shared;
    // It refuses the all-zero result itself.
    if (crypto_scalarmult_curve25519(shared.data(), ours.secret.data(), theirs.data()) != 0)
        return fail("The X25519 public key that arrived is not valid.");
    return shared;
}

}  // namespace mpisec::keys
