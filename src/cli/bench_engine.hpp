// `mpisec bench engine`: how much several cores seal and open for one thread that sends or receives.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace mpisec::cli {

struct BenchEngineOptions {
    std::string aead = "auto";  ///< as MPISEC_AEAD
    std::vector<std::size_t> packets = {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072};
    std::vector<std::size_t> messages = {1 << 20, 16 << 20};  ///< in segments as long as a job's
    std::vector<unsigned> threads;                            ///< empty: 1 to all hardware threads
    bool dedicated = false;  ///< the communicating thread only communicates, so there is one more thread
    bool tcp = false;        ///< what is sealed travels through a TCP connection
    int rounds = 7;
    double milliseconds = 40;  ///< duration of a turn
    std::string output, words;
    bool json = false;
};

/// Prints a table or a result for `mpisec report`; returns the exit status: 0, or 2 after saying what is wrong.
int bench_engine(const BenchEngineOptions& options);

}  // namespace mpisec::cli
