// MPI_Init's start-up on a simulated cluster: what `mpisec sim startup` prints. The cards are put together by the code that ranks
// run (wire/node_cards.hpp), along the trees that they take on MPICH; times are virtual.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/sim/cluster_model.hpp"
#include "fabric/topology.hpp"

namespace mpisec::cli {

/// Bytes that cross between nodes.
struct NodeTraffic {
    std::uint64_t sent = 0, received = 0;
};

struct StartupReport {
    int rounds = 0;  ///< messages one after the other on the longest way: cards up and down,
                     ///< handshakes, job secret, counts
    std::vector<NodeTraffic> traffic;        ///< by node
    std::uint64_t card_bytes = 0;            ///< all cards as one message
    std::uint64_t bytes_while_starting = 0;  ///< memory of a rank: its cards and what it receives them into
    std::uint64_t lasting_bytes = 0;         ///< memory of a rank: what it keeps of all ranks
    double cards_seconds = 0;                ///< until the last rank has all cards
    double seconds = 0;                      ///< until rank 0 knows that every node has the job secret
};

/// `handshake_seconds`: what both sides of one handshake compute together.
StartupReport simulate_startup(const fabric::Topology& topology, const fabric::sim::ClusterModel& model,
                               double handshake_seconds);

/// The time of a handshake, measured here: the median of several.
double time_of_handshake();

}  // namespace mpisec::cli
