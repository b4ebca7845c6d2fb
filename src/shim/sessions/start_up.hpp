// A realm's start-up (docs/protocol.md, "Further realms"; S5, S7): what MPI_Init does for MPI_COMM_WORLD, for the
// processes of a communicator that the MPI library has made of others: a session's group, two worlds.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "shim/p2p/communicator.hpp"
#include "shim/startup/hello.hpp"

namespace mpisec::shim {

/// The hash that stands for a name of the program's, of this kind, where the library sends it in clear.
std::string hidden(const std::string& kind, const std::string& name);

/// The place of a process in one of two groups.
struct Place {
    std::uint32_t side = 0, rank = 0;
    std::int32_t job_rank = -1;
};
/// Returns what all processes say of themselves. Collective over `all`, on which nothing else travels. `call`: the
/// procedure and what all participants know of its arguments. Ends the job when settings differ.
std::vector<Hello> meet_strangers(MPI_Comm all, const std::string& call, Place place = {});

/// Whether the processes of this side, whose hellos the handshakes have authenticated, are those of the group. Otherwise,
/// with two calls of the same arguments under way, an attacker who leads connections of one to the other would swap them.
bool are_processes(const std::vector<Hello>& hellos, std::uint32_t side, Ranks job_ranks);

/// Whether the hellos say that all processes may be on one node.
bool may_be_one_node(const std::vector<Hello>& hellos);

/// Runs the handshakes between all processes, each a node of its own. On return the realm has a secret and a channel, and
/// calls are protected. An error ends the job, on every rank that knows why.
Realm& start_realm(MPI_Comm all, const std::vector<Hello>& hellos);

/// A realm of processes that are proven to be on one node, in the order of this group.
Realm& know_one_node(MPI_Group group);

/// Gives the program `made`, a communicator of the realm's processes that has no parent, when it is what it must be
/// (construction.hpp). Returns an error code that was not raised.
int hand_out_first(Realm& realm, const char* procedure, const std::string& constructor, Membership expected,
                   MPI_Comm made);

}  // namespace mpisec::shim
