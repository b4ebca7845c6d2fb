// Large buffers in parts on several threads, where a part needs no result of the one before.
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/keyring.hpp"

namespace mpisec::provider {

/// A buffer from this size on may be shared among threads: below, waking them takes longer than they save.
inline constexpr std::size_t shared_bytes = 512 * 1024;

/// Whether the mode has independent parts, and there is more than one thread (MPISEC_PROVIDER_THREADS, at most the
/// cores that this process may use).
bool can_share(int mode, bool encrypt);

/// Keyring::crypt in parts; on this thread only while another buffer has the others.
bool crypt_on_threads(Keyring& keys, bool encrypt, std::uint8_t* to, const std::uint8_t* from, std::size_t n,
                      std::uint8_t* iv);

}  // namespace mpisec::provider
