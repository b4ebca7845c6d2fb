// Large buffers in parts on several threads, where a part needs no result of the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "provider/keyring.hpp"

namespace mpisec::provider {

/// A buffer from this size on may be shared among threads: below, waking them takes longer than they save.
inline constexpr std::size_t shared_bytes = 512 * 1024;

/// A thread's share of such a buffer at a time.
inline constexpr std::size_t part_bytes = 64 * 1024;

bool has_threads();  ///< more than the caller's (MPISEC_PROVIDER_THREADS)
/// work(0) … work(parts - 1) on several threads; false, and nothing done, while another buffer has them.
bool on_threads(std::size_t parts, const std::function<void(std::size_t)>& work);
/// Increases a big-endian counter.
void add_blocks(std::uint8_t* counter, std::uint64_t blocks);

/// Whether GCM of large buffers runs on several threads: the libraries for it are there, too.
bool gcm_can_share(std::size_t key_n);

/// Whether the mode has independent parts, and there is more than one thread (MPISEC_PROVIDER_THREADS, at most the
/// cores that this process may use).
bool can_share(int mode, bool encrypt);

/// Keyring::crypt in parts; on this thread only while another buffer has the others.
bool crypt_on_threads(Keyring& keys, bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv);

}  // namespace mpisec::provider
