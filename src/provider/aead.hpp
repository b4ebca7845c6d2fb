// AES-GCM and ChaCha20-Poly1305: EVP's calls in any pieces, and the records of TLS 1.2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/keyring.hpp"
#include "provider/parameters.hpp"

namespace mpisec::provider {

void reserve_aead();  ///< as reserve_contexts()
void* new_aead(const Instance* instance, const Traits* traits);
void free_aead(void* context);
void* copy_aead(void* context);
int init_aead(void* context, bool encrypt, const std::uint8_t* key, std::size_t key_n, const std::uint8_t* iv,
              std::size_t iv_n, const OSSL_PARAM parameters[]);
int get_aead_parameters(void* context, OSSL_PARAM parameters[]);
int set_aead_parameters(void* context, const OSSL_PARAM parameters[]);
int aead_update(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
                const unsigned char* in, std::size_t in_n);
int aead_final(void* context, unsigned char* out, std::size_t* out_n, std::size_t room);
int aead_cipher(void* context, unsigned char* out, std::size_t* out_n, std::size_t room,
                const unsigned char* in, std::size_t in_n);

}  // namespace mpisec::provider
