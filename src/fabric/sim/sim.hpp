// Thousands of ranks in one process, in virtual time: the same algorithms as on MPI, with a seeded schedule,
// a ledger of every nonce, and counters of the six metrics of Lahijani et al. (IPDPS 2021, section IV.A) per
// rank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/sim/cluster_model.hpp"
#include "fabric/task.hpp"

namespace mpisec::fabric::sim {

struct Metrics {
    std::uint64_t communication_rounds = 0;  ///< r_c: messages sent or received, whichever is more
    std::uint64_t communicated_bytes = 0;    ///< s_c: likewise; tags included
    std::uint64_t seals = 0;                 ///< r_e
    std::uint64_t sealed_bytes = 0;          ///< s_e: plaintext
    std::uint64_t opens = 0;                 ///< r_d
    std::uint64_t opened_bytes = 0;          ///< s_d: plaintext
};

struct Options {
    std::uint64_t seed = 1;  ///< order of what happens at the same time
    bool data = true;  ///< false: no bytes are moved, only counted; rooms have sizes but must not be touched
    bool few_parts = false;    ///< as Fabric::few_parts()
    std::uint64_t tamper = 0;  ///< n > 0: the n-th message between nodes is changed on the way
};

struct Report {
    double seconds = 0;                   ///< until the last rank was done
    std::vector<Metrics> metrics;         ///< by rank
    std::vector<std::size_t> room_bytes;  ///< by rank: memory of its own that it was given
    std::vector<char> failed;             ///< by rank: what it received cannot be believed
    std::uint64_t messages_between = 0;
    /// deadlock, repeated nonce, sizes that do not fit: a fault of the algorithm; else empty
    std::string error;
    /// The largest of each metric over the ranks: that of the critical path, as the paper counts.
    Metrics worst() const;
};

/// What a rank runs. Buffers that it uses come from the Fabric or, with data, from anywhere.
using Program = std::function<Task(Fabric&)>;

/// Runs `program` on every rank of `topology`.
Report run(const Topology& topology, const ClusterModel& model, const Program& program,
           const Options& options = {});

/// An address for buffers of any size that are never touched, for Options::data = false. No program has memory there.
std::uint8_t* untouchable();

}  // namespace mpisec::fabric::sim
