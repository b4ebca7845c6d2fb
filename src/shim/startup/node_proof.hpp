// Which ranks share memory with this one, proven by sharing memory (M1), and what the ranks of a node tell
// each other through that memory.
//
// The cards propose the nodes. But they arrive over the network, so each rank of a proposed node opens one shared-memory
// object, named after a random value of the node's lowest rank, and shows its hello there. Only when exactly the proposed
// ranks are found in that memory, and their hellos agree and make the card that the network brought, are they a node;
// anything else ends the job (S1, S7). MPI's own shared split is not used: it too is made of unauthenticated messages, and
// its blocking rounds cost 0.1 to 4 s where there are more ranks than cores.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aead/aead.hpp"
#include "base/ranks.hpp"
#include "config/settings.hpp"
#include "keys/secret.hpp"
#include "shim/runtime/node_peers.hpp"
#include "shim/startup/key_exchange.hpp"
#include "shim/startup/node_cards.hpp"

namespace mpisec::shim {

class NodeProof {
  public:
    /// Called by all ranks of the node that a card proposes.
    NodeProof(const NodeCards& cards, const Hello& own, const config::Settings& settings);
    ~NodeProof();
    NodeProof(const NodeProof&) = delete;
    NodeProof& operator=(const NodeProof&) = delete;

    Ranks members() const { return members_; }  ///< world ranks, ascending; holds this rank
    bool leads() const { return members_.front() == own_.rank; }
    /// The members' hellos, in the order of members().
    std::vector<Hello> hellos() const;

    // Each of the following is called by all members, once.

    /// The leader's choice of crypto libraries, which may have needed a calibration; members with the
    /// same MPISEC_AEAD and the same plug-ins adopt it. Only where the job crosses nodes. Ends the job when a member ends up with another cipher.
    aead::Selection select_aead();
    /// The leader hands over what the leaders agreed on and the others copy it; all return it. The shared copy
    /// is wiped before the leader returns.
    JobAgreement share_agreement(std::optional<JobAgreement> from_leader);

    /// The processes of the members, for node_peers.hpp.
    std::vector<NodePeer> processes() const;
    /// Opens the rest of this memory, in which lies what the members share from now on (fabric/node_arena.hpp).
    void keep();

  private:
    struct Shared;
    struct Entry;
    enum Stage : std::uint32_t { forming, formed, has_job_secret };

    void create();
    void open();
    bool map(int descriptor);
    void enter();
    void choose_aead();
    void close_list();
    void require_card() const;
    std::string too_late() const;
    void require_listed();
    void publish(Stage stage);
    void await(Stage stage, const char* what);
    off_t arena_begin() const;
    [[noreturn]] void abort_without(int error) const;

    const NodeCards& cards_;
    const NodeCard& card_;
    const Hello& own_;
    const config::Settings& settings_;
    Ranks members_;
    std::string name_;
    std::size_t bytes_ = 0;
    Shared* shared_ = nullptr;
    int descriptor_ = -1;
    aead::Selection selection_;  ///< the leader's
};

}  // namespace mpisec::shim
