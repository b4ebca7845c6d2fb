// What `mpisec bench engine` times: a stream of packets, or messages in segments, sealed and sent or received and
// opened in order by one thread with an engine behind it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "aead/aead.hpp"
#include "base/error.hpp"

namespace mpisec::cli {

struct EngineCase {
    bool receives = false;
    std::size_t bytes = 0;    ///< of a packet or message
    std::size_t segment = 0;  ///< of a message; 0: packets instead, all under one key
    unsigned threads = 1;     ///< number of threads that seal or open
    bool dedicated = false;   ///< the communicating thread is one more; otherwise it is one of them
    bool tcp = false;
};

struct EngineTime {
    double gb_per_s = 0;
    double communicating = 0;             ///< seconds per GB in the calls that send or receive
    std::vector<double> thread_s_per_gb;  ///< each thread's own share, the communicating one first
    unsigned useful_threads = 0;
};

/// One turn of about `seconds`. Fails when a library fails, or when what was received is not what was sent.
Result<EngineTime> time_engine(const EngineCase& one, const aead::Selection& selection, double seconds);

}  // namespace mpisec::cli
