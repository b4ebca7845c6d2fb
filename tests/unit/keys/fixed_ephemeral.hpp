// The one way to give a handshake a known ephemeral key; production code has no definition of this struct.
#pragma once

#include "keys/noise.hpp"

namespace mpisec::keys::noise {

struct FixedEphemeral {
    static void set(HandshakeState& handshake, const Secret& secret) {
        handshake.ephemeral_ = x25519_key_pair(Secret(secret.span()));
    }
};

}  // namespace mpisec::keys::noise
