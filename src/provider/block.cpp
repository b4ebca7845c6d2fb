// ECB and CBC: whole blocks, and a padded last one; CBC also with ciphertext stealing.
#include <openssl/crypto.h>
#include <string.h>

#include <algorithm>
#include <cstring>

#include "provider/context.hpp"

namespace mpisec::provider {
namespace {

/// Bytes of padding in the last block; 0 when it is none. Like OpenSSL's, and like what it tells the caller, it
/// is no secret: who decrypts CBC for others without a MAC tells them as much.
std::size_t padding_of(const std::uint8_t* block) {
    const std::size_t n = block[block_bytes - 1];
    if (n == 0 || n > block_bytes) return 0;
    for (std::size_t i = 1; i <= n; ++i)
        if (block[block_bytes - i] != n) return 0;
    return n;
}

/// The inner context for records of TLS, made when the first comes.
bool ready_for_tls(Context& context) {
    if (context.tls) return true;
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &context.tls_version),
        OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &context.tls_mac_n), OSSL_PARAM_END};
    context.tls = EVP_CIPHER_CTX_new();
    return context.tls &&
           EVP_CipherInit_ex2(context.tls, openssl_cipher(context.traits->mode, context.traits->key_n),
                              context.keys.bytes(), context.iv, context.encrypt ? 1 : 0, parameters) == 1;
}

}  // namespace

int tls_record(Context& context, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n) {
    int written = 0;
    if (in != out || !in || room < in_n || in_n > (1 << 20) || !context.padding || !ready_for_tls(context) ||
        EVP_CipherUpdate(context.tls, out, &written, in, static_cast<int>(in_n)) != 1)
        return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    *out_n = static_cast<std::size_t>(written);
    return 1;
}

int block_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                 const unsigned char* in, std::size_t in_n) {
    auto& context = *static_cast<Context*>(opaque);
    if (!context.keys.is_set()) return raise(context.instance, PROV_R_NO_KEY_SET);
    if (context.tls_version > 0) return tls_record(context, out, out_n, room, in, in_n);
    // Decrypting with padding, the last whole block stays here: it may be the padded one.
    const bool holds_back = !context.encrypt && context.padding;
    std::size_t written = 0;
    if (context.buffered > 0) {
        const std::size_t taken = std::min(block_bytes - context.buffered, in_n);
        if (taken > 0) std::memcpy(context.buffer + context.buffered, in, taken);
        context.buffered += taken, in += taken, in_n -= taken;
        if (context.buffered == block_bytes && (in_n > 0 || !holds_back)) {
            if (room < block_bytes) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
            if (!context.crypt(out, context.buffer, block_bytes))
                return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
            context.buffered = 0, written = block_bytes;
        }
    }
    std::size_t whole = in_n / block_bytes * block_bytes;
    if (whole > 0 && whole == in_n && holds_back) whole -= block_bytes;
    if (whole > 0) {
        if (room < written + whole) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
        if (!context.crypt(out + written, in, whole))
            return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
        written += whole, in += whole, in_n -= whole;
    }
    if (in_n > 0) std::memcpy(context.buffer, in, in_n), context.buffered = in_n;
    *out_n = written;
    return 1;
}

int block_final(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room) {
    auto& context = *static_cast<Context*>(opaque);
    if (!context.keys.is_set()) return raise(context.instance, PROV_R_NO_KEY_SET);
    if (context.tls_version > 0) return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    *out_n = 0;
    if (context.encrypt && context.padding) {
        const auto missing = static_cast<std::uint8_t>(block_bytes - context.buffered);
        std::memset(context.buffer + context.buffered, missing, missing);
        context.buffered = block_bytes;
    }
    if (context.buffered == 0 && !context.padding) return 1;
    if (context.buffered != block_bytes) return raise(context.instance, PROV_R_WRONG_FINAL_BLOCK_LENGTH);
    if (context.encrypt && room < block_bytes) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (!context.crypt(context.buffer, context.buffer, block_bytes))
        return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    std::size_t n = block_bytes;
    if (!context.encrypt && context.padding) {
        const std::size_t padding = padding_of(context.buffer);
        if (padding == 0) return raise(context.instance, PROV_R_BAD_DECRYPT);
        n -= padding;
    }
    if (room < n) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    std::memcpy(out, context.buffer, n);
    explicit_bzero(context.buffer, sizeof context.buffer);
    context.buffered = 0;
    *out_n = n;
    return 1;
}

int block_cipher(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
                 const unsigned char* in, std::size_t in_n) {
    auto& context = *static_cast<Context*>(opaque);
    if (!context.keys.is_set()) return raise(context.instance, PROV_R_NO_KEY_SET);
    if (room < in_n) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    // As OpenSSL: what is less than a block of these modes is left as it is.
    const std::size_t whole = in_n / block_bytes * block_bytes;
    if (whole > 0 && !context.crypt(out, in, whole))
        return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    *out_n = in_n;
    return 1;
}

// --- Ciphertext stealing (NIST SP 800-38A, addendum): CS1, CS2, CS3. One call is the whole message.

namespace {

enum Variant : unsigned { cs1 = 1, cs2, cs3 };

/// With a vector of its own.
bool one_block(Context& context, std::uint8_t* iv, std::uint8_t* to, const std::uint8_t* from) {
    return context.keys.crypt(context.encrypt, to, from, block_bytes, iv);
}

bool steal_encrypting(Context& context, bool swapped, std::uint8_t* to, const std::uint8_t* from,
                      std::size_t n) {
    const std::size_t rest = n % block_bytes == 0 ? block_bytes : n % block_bytes, whole = n - rest;
    std::uint8_t last[block_bytes] = {};
    std::memcpy(last, from + whole, rest);
    if (!context.crypt(to, from, whole)) return false;
    std::uint8_t before[block_bytes];
    std::memcpy(before, to + whole - block_bytes, block_bytes);
    if (!one_block(context, context.iv, last, last)) return false;
    if (swapped) {
        std::memcpy(to + whole - block_bytes, last, block_bytes);
        std::memcpy(to + whole, before, rest);
    } else {
        std::memcpy(to + whole - block_bytes + rest, last, block_bytes);
    }
    return true;
}

bool steal_decrypting(Context& context, bool swapped, std::uint8_t* to, const std::uint8_t* from,
                      std::size_t n) {
    const std::size_t rest = n % block_bytes == 0 ? block_bytes : n % block_bytes;
    const std::size_t whole = n - rest - block_bytes;
    std::uint8_t last[block_bytes], before[block_bytes], zero[block_bytes] = {}, stolen[block_bytes];
    std::memcpy(last, from + whole + (swapped ? 0 : rest), block_bytes);
    std::memcpy(before, from + whole + (swapped ? block_bytes : 0), rest);
    if (whole > 0 && !context.crypt(to, from, whole)) return false;
    if (!one_block(context, zero, stolen, last)) return false;
    std::memcpy(before + rest, stolen + rest, block_bytes - rest);
    for (std::size_t i = 0; i < rest; ++i) stolen[i] ^= before[i];
    if (!one_block(context, context.iv, to + whole, before)) return false;
    std::memcpy(to + whole + block_bytes, stolen, rest);
    std::memcpy(context.iv, last, block_bytes);
    explicit_bzero(stolen, sizeof stolen);
    return true;
}

bool steal(Context& context, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    const bool whole_blocks = n % block_bytes == 0;
    if (n == block_bytes || (whole_blocks && context.cts_variant != cs3)) return context.crypt(to, from, n);
    const bool swapped = context.cts_variant != cs1;
    return context.encrypt ? steal_encrypting(context, swapped, to, from, n)
                           : steal_decrypting(context, swapped, to, from, n);
}

}  // namespace

unsigned cts_variant(const char* name) {
    for (unsigned variant = cs1; variant <= cs3; ++variant)
        if (OPENSSL_strcasecmp(name, cts_name(variant)) == 0) return variant;
    return 0;
}

const char* cts_name(unsigned variant) {
    return variant == cs3   ? OSSL_CIPHER_CTS_MODE_CS3
           : variant == cs2 ? OSSL_CIPHER_CTS_MODE_CS2
                            : OSSL_CIPHER_CTS_MODE_CS1;
}

int cts_update(void* opaque, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n) {
    auto& context = *static_cast<Context*>(opaque);
    if (!context.keys.is_set()) return raise(context.instance, PROV_R_NO_KEY_SET);
    if (in_n < block_bytes || context.updated) return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    if (room < in_n) return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    if (!steal(context, out, in, in_n)) return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    context.updated = true;
    *out_n = in_n;
    return 1;
}

int cts_final(void*, unsigned char*, std::size_t* out_n, std::size_t) {
    *out_n = 0;
    return 1;
}

}  // namespace mpisec::provider
