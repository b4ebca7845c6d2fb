// The job as this rank sees it: ranks, nodes, cores, and what start-up agreed on.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "aead/aead.hpp"
#include "coll/selection/selection_settings.hpp"
#include "keys/secret.hpp"

namespace mpisec::shim {

struct World {
    int rank = 0;
    int size = 1;
    std::vector<std::int32_t> node;  ///< per world rank: number of its node, 0 … nodes-1, by lowest rank
    std::vector<std::uint8_t>
        same_node;  ///< per world rank: 1 when it was proven to share memory with this rank (M1)
    int nodes = 1;
    int rank_on_node = 0;
    int ranks_on_node = 1;
    bool oversubscribed = false;        ///< ranks outnumber the cores that they may run on
    coll::Cpus cpus = coll::Cpus::own;  ///< of all ranks: what algorithms are chosen for
    std::uint64_t threshold = 0;        ///< of all ranks: longer messages are pipelined; bytes
    bool crosses_nodes = false;         ///< false: everything below is unset, nothing to protect
    MPI_Comm channel{};  ///< private duplicate of MPI_COMM_WORLD: handshake, then segments of large messages
    std::optional<keys::Secret> job_secret;
    aead::Selection selection;
};

}  // namespace mpisec::shim
