// Whether ranks outnumber the cores they run on. If so, a rank that waits must give its core away: MPI libraries
// poll while they wait, and for whole time slices a rank that polls keeps the rank that it waits for from running.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/selection/selection_settings.hpp"
#include "shim/process/world.hpp"
#include "shim/startup/node_cards.hpp"

namespace mpisec::shim {

/// The cores that this process may run on, in a form that ranks can compare with each other's.
struct Cores {
    std::uint64_t kernel = 0;  ///< hash of the boot id: the same under one kernel, in other containers too
    std::uint64_t set = 0;     ///< hash of the affinity mask
    std::uint32_t cpus = 0;    ///< logical CPUs in the mask
};
Cores cores_here();

/// Whether more ranks have this rank's mask than there are CPUs in it, or more ranks run under its kernel than that has
/// CPUs at all. `node`: the hellos of its node.
bool oversubscribed(const Hello& own, const std::vector<Hello>& node, const NodeCards& cards);

/// coll::Cpus::shared when all ranks of each node have one affinity mask, and at least as many nodes have it
/// as there are CPUs in it, as far as the system tells. The same answer on all ranks.
coll::Cpus cpus_of_job(const NodeCards& cards);

/// Sets the length from which on a message is pipelined, the same on all ranks. The sender and the receiver of a longer message
/// have to agree before it moves. Where ranks share a CPU, one of the two waits for its turn to agree, and nothing is sealed while
/// something else is sent anyway. With a fast cipher two parts cost more than one, up to twice the usual length. Ranks of a node that
/// are bound apart have CPUs of their own.
///
/// A message of up to twice as many bytes that is alone on its way also arrives earlier in one part with such a cipher. Where several
/// messages are on their way, a message that was sealed whole is no longer in the caches when it is sent, which costs more than a
/// second part unless that is short.
void set_threshold(Realm& realm, const NodeCards& cards);

}  // namespace mpisec::shim
