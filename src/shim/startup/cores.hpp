// Whether ranks outnumber the cores they run on. Then whoever waits must give its core away: MPI libraries
// poll while they wait, and a rank that polls keeps the one it waits for from running for whole time slices.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/selection/selection_settings.hpp"
#include "shim/process/world.hpp"
#include "shim/startup/node_cards.hpp"

namespace mpisec::shim {

/// The cores that this process may run on, in marks that ranks compare with each other's.
struct Cores {
    std::uint64_t kernel = 0;  ///< hash of the boot id: alike under one kernel, other containers too
    std::uint64_t set = 0;     ///< hash of the affinity mask
    std::uint32_t cpus = 0;    ///< logical CPUs in the mask
};
Cores cores_here();

/// More ranks than CPUs have this rank's mask, or run under its kernel at all. `node`: the hellos of its node.
bool oversubscribed(const Hello& own, const std::vector<Hello>& node, const NodeCards& cards);

/// coll::Cpus::shared when all ranks of each node have one affinity mask, and at least as many nodes have it
/// as there are CPUs in it, as far as the system tells. The same answer on all ranks.
coll::Cpus cpus_of_job(const NodeCards& cards);

/// From where on a message is pipelined, the same on all ranks. A longer message is an agreement of its
/// sender and its receiver before it moves; where ranks share a CPU, one of them waits for its turn to agree,
/// and nothing is sealed while something else is sent anyway. With a fast cipher two parts cost more than one, up to twice
/// the usual length. Ranks of a node that are bound apart have CPUs of
/// their own.
///
/// A message of up to twice as many bytes, alone on its way, arrives earlier in one part with such a cipher, too; of several, what
/// is sealed whole is cold when it is sent, which costs more than a second part unless that is short.
void set_threshold(Realm& realm, const NodeCards& cards);

}  // namespace mpisec::shim
