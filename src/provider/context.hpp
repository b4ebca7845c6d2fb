// The context of a cipher without a tag: what EVP keeps from EVP_CipherInit to EVP_CipherFinal. It lies, with
// the key, in locked memory.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>

#include "provider/keyring.hpp"
#include "provider/parameters.hpp"
#include "provider/pipes.hpp"

namespace mpisec::provider {

inline constexpr std::size_t block_bytes = 16;

struct Context {
    Context(const Instance* of, const Traits* algorithm)
        : instance(of), traits(algorithm), keys(algorithm->mode, algorithm->key_n) {}
    Context(const Context& other) = default;
    ~Context();

    /// n bytes, whole blocks where the mode has blocks, by whichever library, threads or lanes are best.
    bool crypt(std::uint8_t* to, const std::uint8_t* from, std::size_t n);

    const Instance* instance;
    const Traits* traits;
    bool encrypt = false, vector_set = false, updated = false;
    unsigned padding = 1, num = 0, cts_variant = 1;
    unsigned use_bits = 0;  ///< of CFB1: lengths are of bits
    std::uint8_t iv[block_bytes] = {}, first_iv[block_bytes] = {};
    std::uint8_t buffer[block_bytes] = {};  ///< of a block that is not whole; of CTR, its keystream
    std::size_t buffered = 0;
    /// Records of TLS with CBC, whose padding must not be told from a wrong tag, are OpenSSL's own affair.
    unsigned tls_version = 0;
    std::size_t tls_mac_n = 0;
    EVP_CIPHER_CTX* tls = nullptr;
    Pipes* pipes = nullptr;  ///< of a cipher pipeline
    Keyring keys;
};

/// Locked memory for contexts, before a sandbox forbids it.
void reserve_contexts();

/// The dispatch tables of EVP; all of `Traits` that they are of live for ever.
void* new_context(const Instance* instance, const Traits* traits);
void free_context(void* context);
void* copy_context(void* context);
int init(Context& context, bool encrypt, const std::uint8_t* key, std::size_t key_n, const std::uint8_t* iv,
         std::size_t iv_n, const OSSL_PARAM parameters[]);
int get_parameters(void* context, OSSL_PARAM parameters[]);
int set_parameters(void* context, const OSSL_PARAM parameters[]);

int block_update(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
                 const unsigned char* in, std::size_t in_n);
int block_final(void* context, unsigned char* out, std::size_t* out_n, std::size_t room);
int stream_update(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
                  const unsigned char* in, std::size_t in_n);
int stream_final(void* context, unsigned char* out, std::size_t* out_n, std::size_t room);
/// EVP_Cipher(): no padding, nothing kept.
int block_cipher(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
                 const unsigned char* in, std::size_t in_n);
int cts_update(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n);
int cts_final(void* context, unsigned char* out, std::size_t* out_n, std::size_t room);
int xts_update(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n);

/// A record of TLS: EVP_CipherUpdate of a context with a TLS version.
int tls_record(Context& context, unsigned char* out, std::size_t* out_n, std::size_t room,
               const unsigned char* in, std::size_t in_n);

/// Names of the variants of ciphertext stealing; 0 of an unknown one.
unsigned cts_variant(const char* name);
const char* cts_name(unsigned variant);

}  // namespace mpisec::provider
