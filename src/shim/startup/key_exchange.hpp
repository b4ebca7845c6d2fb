// Hands the job secret from rank 0 down the binomial tree of node leaders, over Noise NNpsk0
// (docs/protocol.md, "Handshakes between leaders"; S5).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "aead/aead.hpp"
#include "aead/throughput.hpp"
#include "config/settings.hpp"
#include "keys/secret.hpp"
#include "shim/startup/node_cards.hpp"

namespace mpisec::shim {

/// What a leader brings to the handshakes.
struct Leadership {
    const NodeCards& cards;
    int rank;
    int size;                          ///< ranks of all nodes
    MPI_Comm comm;                     ///< on which nothing of the program's can be under way
    const keys::Secret& key;           ///< the long-term one
    const aead::Selection& selection;  ///< of crypto libraries; all must have the same cipher
    const config::Settings& settings;
};

/// What all nodes have when the handshakes are done: both come from rank 0.
struct JobAgreement {
    keys::Secret secret;
    aead::Speed cipher_speed;  ///< on rank 0's machine
};

/// Collective over the leaders (lowest ranks) of all nodes. The leader of node n is below the leader of node
/// n & (n - 1); the child initiates, so that all handshakes run at once. The job secret goes down as a
/// transport message and the count of nodes that have it comes back up, so when rank 0 returns every node
/// holds the same key file, cards, cipher and job secret. Ends the job, saying with whom and why, when a
/// handshake fails.
JobAgreement agree_on_job_secret(const Leadership& own);

}  // namespace mpisec::shim
