#include "transport/connection_keys.hpp"

namespace mpisec::transport {

Result<aead::Key> connection_key(const aead::Library& library, const keys::Secret& secret,
                                 keys::ConnectionUse use, const Destination& destination,
                                 std::span<const std::uint8_t> nonces) {
    keys::Secret key;
    keys::connection_key(secret, use, destination, nonces, key.data());
    return library.make_key(cipher, key.data());
}

}  // namespace mpisec::transport
