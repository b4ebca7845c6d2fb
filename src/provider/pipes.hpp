// Cipher pipelines (EVP_CipherPipelineEncryptInit and its like, OpenSSL 3.5) for CBC encryption: messages under one key,
// each with a vector of its own, in the lanes of the CPU.
#pragma once

#include <openssl/params.h>

#include <cstddef>

namespace mpisec::provider {

struct Pipes;

/// OSSL_FUNC_CIPHER_PIPELINE_… of <openssl/core_dispatch.h>, which headers before 3.5 lack. Earlier versions of OpenSSL
/// pass over them in a dispatch table.
inline constexpr int pipeline_encrypt_init_id = 15, pipeline_update_id = 17, pipeline_final_id = 18;

/// `ivs`: one for each of `count` pipes, at most EVP_MAX_PIPES (32).
int pipeline_encrypt_init(void* context, const unsigned char* key, std::size_t key_n, std::size_t count,
                          const unsigned char** ivs, std::size_t iv_n, const OSSL_PARAM parameters[]);
/// Pieces of any sizes, a null pointer and 0 where a pipe has none now. Where one pipe's output has too little room nothing is
/// encrypted.
int pipeline_update(void* context, std::size_t count, unsigned char** out, std::size_t* out_n,
                    const std::size_t* room, const unsigned char** in, const std::size_t* in_n);
int pipeline_final(void* context, std::size_t count, unsigned char** out, std::size_t* out_n,
                   const std::size_t* room);

/// Locked memory for pipelines, before a sandbox forbids it.
void reserve_pipes();
/// Of a context that is copied or given back. Null: there are none, or, of a copy, no memory.
Pipes* copy_pipes(const Pipes* pipes);
void free_pipes(Pipes* pipes);

}  // namespace mpisec::provider
