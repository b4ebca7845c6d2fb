// The simulation's stand-in for an AEAD. No cryptography: enough to tell ciphertext from plaintext, one box
// from another and a changed byte from the right one.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "fabric/fabric.hpp"
#include "fabric/sim/mix.hpp"

namespace mpisec::fabric::sim {

inline std::uint64_t toy_key(Box box) {
    return mix(static_cast<std::uint64_t>(box.sealer) << 32 | box.index);
}

inline void toy_tag(std::uint8_t* tag, Plain ciphertext, Box box) {
    std::uint64_t digest = mix(~toy_key(box));
    for (std::uint8_t byte : ciphertext) digest = mix(digest ^ byte);
    std::memset(tag, 0x5A, aead::tag_bytes);
    std::memcpy(tag, &digest, sizeof digest);
}

inline void toy_crypt(PlainRoom to, Plain from, Box box) {
    const std::uint64_t key = toy_key(box);
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<std::uint8_t>(from[i] ^ mix(key + i));
}

/// `to`: sealed_bytes(from.size()).
inline void toy_seal(PlainRoom to, Plain from, Box box) {
    const PlainRoom ciphertext = to.first(from.size());
    toy_crypt(ciphertext, from, box);
    toy_tag(to.data() + from.size(), ciphertext, box);
}

/// Zeros and false when `from` is not what toy_seal() made of this box.
inline bool toy_open(PlainRoom to, Plain from, Box box) {
    const Plain ciphertext = from.first(to.size());
    std::uint8_t tag[aead::tag_bytes];
    toy_tag(tag, ciphertext, box);
    if (std::memcmp(tag, from.data() + to.size(), sizeof tag) != 0) {
        std::fill(to.begin(), to.end(), std::uint8_t{0});
        return false;
    }
    toy_crypt(to, ciphertext, box);
    return true;
}

}  // namespace mpisec::fabric::sim
