// Where collectives of one communicator meet: its private twin with tags, the keys of its boxes, the memory
// of its ranks on this node, and the count of collectives, which names every box (S4).
//
// A persistent collective has a space of its own: the order in which several of them are started need not be
// the same on all ranks (MPI standard section 6.13), so they can not share a count.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aead/aead.hpp"
#include "coll/selection.hpp"
#include "fabric/node_memory.hpp"
#include "fabric/topology.hpp"
#include "keys/secret.hpp"
#include "wire/collective.hpp"

namespace mpisec::shim {

struct Communicator;

/// Name of memory that the ranks of this context on `node` share; only the job's ranks know it.
std::string memory_name(const wire::ContextId& context, int node);

/// The keys of a communicator's collectives in one epoch.
struct CollectiveKeys {
    std::uint64_t epoch = 0;
    aead::KeySet aead;
    keys::Secret box;  ///< of which large boxes derive theirs
};

/// What one collective call gets: its number, and what it shares with the other ranks.
struct CollectiveTicket {
    std::uint64_t number = 0;           ///< on its space, from 0
    std::uint32_t number_in_epoch = 0;  ///< for nonces
    std::shared_ptr<CollectiveKeys> keys;
    int tag = 0;
    fabric::NodeMemory::Slot* slot =
        nullptr;  ///< null when no other rank of the communicator is on this node
};

/// Of memory that the ranks of one node share.
std::string memory_name(const wire::ContextId& context, int node);

/// The private communicator that messages travel on. Freed with the last space on it: a persistent collective
/// may be started after MPI_Comm_free of its communicator (MPI standard section 7.4.3).
class Twin {
  public:
    explicit Twin(MPI_Comm handle) : handle_(handle) {}
    Twin(const Twin&) = delete;
    Twin& operator=(const Twin&) = delete;
    ~Twin();
    MPI_Comm handle() const { return handle_; }

  private:
    MPI_Comm handle_;
};

class CollectiveSpace {
  public:
    /// Owns `twin` from now on, whose ranks are `people`.
    CollectiveSpace(MPI_Comm twin, std::vector<std::int32_t> people, const wire::ContextId& context);
    /// A space beside this one on the same twin, for the `number`-th persistent collective.
    std::unique_ptr<CollectiveSpace> for_persistent(std::uint64_t number) const;

    MPI_Comm twin() const { return twin_->handle(); }
    int rank() const { return rank_; }                                   ///< on the twin
    const std::vector<std::int32_t>& people() const { return people_; }  ///< world ranks, by rank
    const wire::ContextId& context() const { return context_; }
    const fabric::Topology& topology() const { return topology_; }
    /// To be taken in the order of the calls, by every rank, whether it takes part or not. Under the Guard.
    CollectiveTicket next(bool blocking);

    /// What collective_choice.cpp has found for this topology; filled when first asked.
    using Choice = std::optional<coll::Selection::For>;
    std::array<Choice, coll::collectives> choices;

  private:
    CollectiveSpace(const CollectiveSpace& beside, std::uint64_t number);
    fabric::NodeMemory::Slot* next_slot(bool blocking);

    std::shared_ptr<Twin> twin_;
    wire::ContextId context_;
    int rank_ = 0;
    std::vector<std::int32_t> people_;
    fabric::Topology topology_;
    int first_tag_, tags_;
    std::uint64_t numbers_in_epoch_;
    std::uint64_t next_number_ = 0, next_blocking_ = 0, next_other_ = 0;
    std::shared_ptr<CollectiveKeys> keys_;
    std::optional<fabric::NodeMemory> memory_;
};

}  // namespace mpisec::shim
