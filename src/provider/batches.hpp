// CBC encryption in ASYNC jobs: buffers of several jobs at once in the lanes of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/keyring.hpp"

namespace mpisec::provider {

/// Pausing a job takes longer than smaller buffers do.
inline constexpr std::size_t batched_bytes = 512;

/// Whether the caller runs in a job of ASYNC_start_job(), which may be paused, and some library has lanes.
bool in_async_job();

/// Queues the buffer and pauses the job; the first job of this thread that is resumed before its buffer is done, or
/// that fills the lanes, encrypts all that have come together.
bool encrypt_in_batch(Keyring& keys, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv);

}  // namespace mpisec::provider
