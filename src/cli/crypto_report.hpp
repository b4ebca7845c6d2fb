// The crypto plug-ins that are installed, for `mpisec info` and `mpisec doctor`.
#pragma once

namespace mpisec::cli {

/// Prints one line per plug-in: name, version of its library, the ciphers that work on this machine. False when none
/// can be used.
bool print_crypto_libraries();

}  // namespace mpisec::cli
