// What the aead tests share: every (library, cipher) of this build, hexadecimal, and one message's seal and
// open.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "aead/aead.hpp"

namespace mpisec::aead::test {

using Bytes = std::vector<std::uint8_t>;

struct Implementation {
    const Library* library;
    Cipher cipher;
    std::string name() const { return std::string(library->name()) + ":" + std::string(info(cipher).name); }
};

inline std::vector<Implementation> implementations() {
    std::vector<Implementation> all;
    for (const std::string& name : available()) {
        Result<const Library*> library = load(name);
        if (!library) {
            ADD_FAILURE() << library.error().message;
            continue;
        }
        for (const CipherInfo& cipher : ciphers())
            if ((*library)->has(cipher.id)) all.push_back({*library, cipher.id});
    }
    return all;
}

inline Key key_of(const Implementation& one, const Bytes& bytes) {
    Result<Key> key = one.library->make_key(one.cipher, bytes.data());
    EXPECT_TRUE(key) << key.error().message;
    return key ? std::move(*key) : Key();
}

inline Bytes from_hex(const std::string& hex) {
    Bytes bytes(hex.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    return bytes;
}

/// Bytes that differ from one `seed` to the next and do not repeat within a message.
inline Bytes pattern(std::size_t n, std::uint32_t seed) {
    Bytes bytes(n);
    std::uint32_t state = seed * 2654435761u + 1;
    for (std::uint8_t& byte : bytes) {
        state = state * 1664525u + 1013904223u;
        byte = static_cast<std::uint8_t>(state >> 24);
    }
    return bytes;
}

inline bool all_zero(const Bytes& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace mpisec::aead::test
