#include "keys/hkdf.hpp"

#define OPENSSL_SUPPRESS_DEPRECATED  // SHA256_Init and friends; hkdf.hpp says why
#include <openssl/sha.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "keys/secret.hpp"

namespace mpisec::keys {
namespace {

constexpr std::size_t block_bytes = 64;

SHA256_CTX* context(std::uint8_t* state) {
    return reinterpret_cast<SHA256_CTX*>(state);
}

}  // namespace

Sha256::Sha256() {
    static_assert(sizeof(SHA256_CTX) == sizeof state_ && alignof(SHA256_CTX) <= 8);
    SHA256_Init(new (state_) SHA256_CTX);
}

Sha256::~Sha256() {
    wipe(state_, sizeof state_);
}

Sha256& Sha256::update(Bytes data) {
    SHA256_Update(context(state_), data.data(), data.size());
    return *this;
}

void Sha256::finish(std::uint8_t* out) {
    SHA256_Final(out, context(state_));
}

Digest sha256(Bytes data) {
    Digest digest;
    Sha256().update(data).finish(digest.data());
    return digest;
}

HmacSha256::HmacSha256(Bytes key) {
    std::uint8_t padded[block_bytes] = {};
    if (key.size() > block_bytes) {
        Sha256().update(key).finish(padded);
    } else if (!key.empty()) {
        std::memcpy(padded, key.data(), key.size());
    }
    for (std::size_t i = 0; i < block_bytes; ++i) {
        outer_pad_[i] = padded[i] ^ 0x5c;
        padded[i] ^= 0x36;
    }
    inner_.update(padded);
    wipe(padded, sizeof padded);
}

HmacSha256::~HmacSha256() {
    wipe(outer_pad_, sizeof outer_pad_);
}

void HmacSha256::finish(std::uint8_t* out) {
    std::uint8_t inner[digest_bytes];
    inner_.finish(inner);
    Sha256().update(outer_pad_).update(inner).finish(out);
    wipe(inner, sizeof inner);
}

void hkdf_extract(Bytes salt, Bytes input, std::uint8_t* prk) {
    HmacSha256(salt).update(input).finish(prk);
}

void hkdf_expand(Bytes prk, Bytes info, std::span<std::uint8_t> out) {
    assert(out.size() <= 255 * digest_bytes);
    Digest block;
    std::uint8_t counter = 0;
    for (std::size_t at = 0; at < out.size(); at += digest_bytes) {
        HmacSha256 hmac(prk);
        if (counter > 0) hmac.update(block);
        ++counter;
        hmac.update(info).update({&counter, 1}).finish(block.data());
        std::memcpy(out.data() + at, block.data(), std::min(digest_bytes, out.size() - at));
    }
    wipe(block.data(), block.size());
}

}  // namespace mpisec::keys
