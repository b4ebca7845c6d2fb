// CBC encryption of several buffers at once in the lanes of the CPU: those of ASYNC jobs, and of cipher pipelines
// (pipes.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/keyring.hpp"

namespace mpisec::provider {

struct Batched {
    Keyring* keys = nullptr;
    mpisec_cipher_buffer buffer{};  ///< but for the key
    bool good = false;
};

/// Whether some library has lanes.
bool has_lanes();

/// Encrypts them, at most `most_together` and of keys of one length, in lanes where that is worth it.
inline constexpr std::size_t most_together = 32;
void encrypt_together(std::span<Batched* const> all);

/// Pausing a job takes longer than smaller buffers do.
inline constexpr std::size_t batched_bytes = 512;

/// Whether the caller runs in a job of ASYNC_start_job(), which may be paused, and some library has lanes.
bool in_async_job();

/// Takes buffers of this thread's jobs with these keys out of the queue; the jobs fail if they are ever resumed.
void forget_in_batches(const Keyring& keys);

/// Queues the buffer and pauses the job; the first job of this thread that is resumed before its buffer is done, or
/// that fills the lanes, encrypts all that have come together.
bool encrypt_in_batch(Keyring& keys, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv);

}  // namespace mpisec::provider
