// Which ranks share memory with this one, proven by sharing memory (M1), and what the ranks of a node tell
// each other through it.
//
// MPI's shared split only proposes: its answer is made from messages that an attacker may have forged. The
// lowest rank of the proposed group makes a shared-memory object of a random name, the others open it by that
// name, and only those whose entries its maker then reads in that memory are on its node. The name is gone as
// soon as all have tried. A proposed rank that does not find the object, or was started by another launcher
// (another job of this user, whose messages an attacker could splice into ours), is a node of its own: all
// its traffic is sealed, nothing is lost but speed.
//
// What MPI's transport does between two ranks that share memory is trusted: it stays on the node.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aead/aead.hpp"
#include "config/settings.hpp"
#include "keys/hkdf.hpp"
#include "keys/secret.hpp"

namespace mpisec::shim {

/// Ends the job with a sentence unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Reports once, and aborts when so set, when a wait at start-up lasts longer than MPISEC_STALL_TIME (S8).
class StallClock {
  public:
    StallClock(const config::Settings& settings, std::string waiting_for);
    void look();

  private:
    const config::Settings& settings_;
    std::string waiting_for_;
    double begun_;
    bool reported_ = false;
};

class NodeMemory {
  public:
    /// Collective over MPI_COMM_WORLD.
    NodeMemory(int rank, int size, const config::Settings& settings);
    ~NodeMemory();
    NodeMemory(const NodeMemory&) = delete;
    NodeMemory& operator=(const NodeMemory&) = delete;

    const std::vector<std::int32_t>& members() const {
        return members_;
    }  ///< world ranks, ascending; holds this rank
    bool leads() const { return members_.front() == rank_; }

    // Each of the following is called by all members, once, in this order.

    /// The leader's choice of crypto libraries, which may need a calibration; members whose MPISEC_AEAD is
    /// the same adopt it.
    aead::Selection select_aead();
    /// The leader hands over the master secret and what it was agreed with; the others copy it. Returns it on
    /// all members. Ends the job when a member's `agreement` differs from its leader's. The memory is wiped
    /// before the leader returns.
    keys::Secret share_master(std::optional<keys::Secret> from_leader, const keys::Digest& agreement);

  private:
    struct Shared;
    struct Entry;
    enum Stage : std::uint32_t { forming, formed, selected, mastered };

    void create(std::size_t candidates);
    void open(std::size_t candidates);
    void enter();
    void close_list();
    void learn_members();
    bool map(int descriptor, std::size_t candidates);
    void publish(Stage stage);
    void await(Stage stage, const char* what);

    int rank_, size_;
    const config::Settings& settings_;
    MPI_Comm candidates_;
    char name_[48] = {};
    Shared* shared_ = nullptr;
    Entry* own_ = nullptr;
    std::size_t bytes_ = 0;
    std::vector<std::int32_t> members_;
};

}  // namespace mpisec::shim
