// `mpisec bench crypto`: what sealing and opening cost on this machine, beside memcpy.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mpisec::cli {

struct BenchCryptoOptions {
    std::vector<std::string> libraries;  ///< empty: all that are installed
    std::vector<std::string> ciphers;    ///< empty: all that some library offers
    /// bytes
    std::vector<std::size_t> sizes = {16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
    std::vector<unsigned> threads = {1};  ///< each thread has a key and buffers of its own
    int repetitions = 7;                  ///< rounds; the medians are reported
    bool json = false;
};

/// Measures and prints to standard output; returns the exit status: 0, or 2 when an option names something that is not
/// there. Libraries, directions and memcpy take turns inside each round, so that a change of the machine's speed
/// affects all of them.
int bench_crypto(const BenchCryptoOptions& options);

}  // namespace mpisec::cli
