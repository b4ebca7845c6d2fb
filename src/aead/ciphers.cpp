// The ciphers by name, number and key length.
#include <algorithm>
#include <cstdlib>

#include "aead/aead.hpp"

namespace mpisec::aead {

std::span<const CipherInfo> ciphers() {
    static constexpr CipherInfo all[] = {
        {Cipher::aes_128_gcm, "aes-128-gcm", 16},
        {Cipher::aes_256_gcm, "aes-256-gcm", 32},
        {Cipher::chacha20_poly1305, "chacha20-poly1305", 32},
        {Cipher::aegis_128l, "aegis-128l", 16},
        {Cipher::aegis_256, "aegis-256", 32},
        {Cipher::aegis_128x2, "aegis-128x2", 16},
        {Cipher::aegis_128x4, "aegis-128x4", 16},
    };
    return all;
}

const CipherInfo& info(Cipher cipher) {
    for (const CipherInfo& entry : ciphers())
        if (entry.id == cipher) return entry;
    std::abort();  // not a Cipher: a bug of the caller, never caused by input
}

std::optional<Cipher> cipher_by_name(std::string_view name) {
    for (const CipherInfo& entry : ciphers())
        if (entry.name == name) return entry.id;
    return std::nullopt;
}

}  // namespace mpisec::aead
