// The simulation's stand-in for an AEAD. It is not cryptography: just enough to tell ciphertext from plaintext, one sealed block from
// another and a changed byte from the right one.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "fabric/fabric.hpp"
#include "fabric/sim/mix.hpp"

namespace mpisec::fabric::sim {

inline std::uint64_t toy_key(SealedBlock sealed_block) {
    return mix(static_cast<std::uint64_t>(sealed_block.sealer) << 32 | sealed_block.index);
}

inline void toy_tag(std::uint8_t* tag, Plaintext ciphertext, SealedBlock sealed_block) {
    std::uint64_t digest = mix(~toy_key(sealed_block));
    for (std::uint8_t byte : ciphertext) digest = mix(digest ^ byte);
    std::memset(tag, 0x5A, aead::tag_bytes);
    std::memcpy(tag, &digest, sizeof digest);
}

inline void toy_crypt(PlaintextBuffer to, Plaintext from, SealedBlock sealed_block) {
    const std::uint64_t key = toy_key(sealed_block);
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<std::uint8_t>(from[i] ^ mix(key + i));
}

/// `to`: sealed_bytes(from.size()).
inline void toy_seal(PlaintextBuffer to, Plaintext from, SealedBlock sealed_block) {
    const PlaintextBuffer ciphertext = to.first(from.size());
    toy_crypt(ciphertext, from, sealed_block);
    toy_tag(to.data() + from.size(), ciphertext, sealed_block);
}

/// Zeros and false when `from` is not what toy_seal() made of this sealed block.
inline bool toy_open(PlaintextBuffer to, Plaintext from, SealedBlock sealed_block) {
    const Plaintext ciphertext = from.first(to.size());
    std::uint8_t tag[aead::tag_bytes];
    toy_tag(tag, ciphertext, sealed_block);
    if (std::memcmp(tag, from.data() + to.size(), sizeof tag) != 0) {
        std::fill(to.begin(), to.end(), std::uint8_t{0});
        return false;
    }
    toy_crypt(to, ciphertext, sealed_block);
    return true;
}

}  // namespace mpisec::fabric::sim
