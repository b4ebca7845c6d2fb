// The job as this rank sees it: ranks, nodes, cores, and what start-up agreed on.
//
// A realm is a set of processes that did a start-up together and share its secret: the world of MPI_Init, the
// group of a session, a world and the one that it spawned or connected to. A process numbers all processes
// that it knows: those of MPI_COMM_WORLD have their world ranks, those of each further realm the numbers from
// Realm::first on, in the order of their ranks in the realm. A process in two realms has two numbers. Numbers
// are private to this process (names in the code say "world rank"): what travels, and what keys and contexts
// are derived from, are ranks in the realm.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "aead/aead.hpp"
#include "aead/throughput.hpp"
#include "coll/selection/selection_settings.hpp"
#include "fabric/topology.hpp"
#include "keys/secret.hpp"

namespace mpisec::shim {

struct Realm {
    int rank = 0;
    int size = 1;
    std::int32_t first = 0;  ///< number of its rank 0
    /// Private duplicate of a communicator of all its ranks: handshake, then segments of large messages. Unset
    /// where the realm is proven to be on one node: there is nothing to protect.
    MPI_Comm channel{};
    std::optional<keys::Secret> job_secret;
    /// On all ranks: the most bytes of a message's first part; longer messages have several parts.
    std::uint64_t threshold = 0;
    std::uint64_t short_first = 0;  ///< bytes of the first part where links leave the core time (sending.cpp)
    aead::Speed cipher_speed = aead::Speed::slow;  ///< on all ranks: decides how long data is cut
    bool seals_on_node = false;                    ///< each rank counts as a node of its own
    bool handed_out = false;                       ///< the program has got its first communicator
    MPI_Group group{};  ///< its processes in the order of ranks; not kept for MPI_COMM_WORLD
    std::int32_t own_number() const { return first + rank; }
};

struct World : Realm {
    /// The nodes of the world ranks. The ranks of a node were proven to share memory (M1).
    fabric::Topology topology;
    int nodes = 1;
    int rank_on_node = 0;
    int own_node = 0;
    int ranks_on_node = 1;
    std::int32_t first_on_node = -1;    ///< lowest rank of its node, if the node's are consecutive; else -1
    bool oversubscribed = false;        ///< ranks outnumber the cores that they may run on
    coll::Cpus cpus = coll::Cpus::own;  ///< on all ranks: what algorithms are chosen for
    bool crosses_nodes = false;  ///< false: channel, secret and selection are unset, nothing to protect
    aead::Selection selection;   ///< of all realms of this process
    std::int32_t node_of(std::int32_t world_rank) const { return topology.node(world_rank); }
    bool on_own_node(std::int32_t world_rank) const {
        if (first_on_node < 0) return topology.node(world_rank) == own_node;
        return world_rank >= first_on_node && world_rank - first_on_node < ranks_on_node;
    }
};

}  // namespace mpisec::shim
