// Communicators from a session's group. No keys were agreed on with its processes, so all of them must share
// this node, which is proven before the MPI library sends anything: by the node map of MPI_Init for processes
// of its world, else by shared memory (session_proof.hpp).
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "config/settings.hpp"
#include "shim/calls/entry.hpp"
#include "shim/calls/guarded.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/communicators/session_proof.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"

namespace mpisec::shim {

struct SessionSettings {
    std::once_flag loaded;
    std::string wrong;  ///< empty, or what is wrong with them
};

namespace {

constexpr const char* create_from_group = "MPI_Comm_create_from_group";

/// Calls the handler that the program gave for the communicator that it does not get: one of the program's
/// own on a communicator of this process alone; without such a one, errors are returned.
int raise_through(MPI_Errhandler handler, MPI_Group group, int code) {
    if (handler == constants.errors_return) return code;
    if (handler == constants.errors_are_fatal && world_model_is_on()) end_fatally(code);
    int rank = MPI_UNDEFINED;
    real.Group_rank(group, &rank);
    if (rank == MPI_UNDEFINED) return code;
    MPI_Group self;
    MPI_Comm alone = constants.comm_null;
    real.Group_incl(group, 1, &rank, &self);
    const int made =
        real.Comm_create_from_group(self, "org.mpisec.refused", constants.info_null, handler, &alone);
    real.Group_free(&self);
    if (made != MPI_SUCCESS || alone == constants.comm_null) return code;
    real.Comm_call_errhandler(alone, code);
    real.Comm_free(&alone);
    return code;
}

/// Settings of a program that has not called MPI_Init. Empty, or what is wrong with them.
const std::string& load_settings() {
    SessionSettings& once = *process.session_settings;
    std::call_once(once.loaded, [&] {
        Result<config::Settings> settings = config::load();
        if (settings)
            state.settings = std::move(*settings);
        else
            once.wrong = settings.error().message;
    });
    return once.wrong;
}

/// Empty when all processes of the group are proven to be on this node. `members`: their world ranks, where
/// there is a world.
std::string why_not_here(MPI_Group group, const char* tag, std::vector<std::int32_t>& members) {
    if (!world_model_is_on()) {
        if (const std::string& wrong = load_settings(); !wrong.empty()) return wrong;
        if (settings().same_node_sealed) return "MPISEC_SAME_NODE=seal is set";
        return why_not_on_one_node(group, tag);
    }
    int size = 0;
    real.Group_size(group, &size);
    members = world_ranks_of(group);
    if (static_cast<int>(members.size()) != size) return "it has processes that are not in MPI_COMM_WORLD";
    if (gate.single_node) return "";
    if (settings().same_node_sealed) return "MPISEC_SAME_NODE=seal is set";
    if (crosses_nodes(Membership{members, {}})) return "it has processes of other nodes";
    return "";
}

/// The error code. The group's first rank says why, in the others' stead; should it not end the job where an
/// error is fatal, they say it too.
int refuse_group(const std::vector<std::int32_t>& members, MPI_Errhandler handler, const std::string& why) {
    const std::string detail = "The group: " + why + ".";
    const bool another_says_it =
        !members.empty() && *std::min_element(members.begin(), members.end()) != state.world.rank;
    if (!another_says_it) return refusal_code(create_from_group, detail);
    if (handler != constants.errors_are_fatal) return refusal_code(create_from_group);
    sleep(seconds_to_end_a_job);
    return refusal_code(create_from_group, detail);
}

/// What the MPI library made has the group that was asked for, and MPIsec knows it from now on.
int check(MPI_Group group, const char* tag, const std::vector<std::int32_t>& members, MPI_Comm made) {
    MPI_Group actual;
    int same = MPI_UNEQUAL;
    if (real.Comm_group(made, &actual) == MPI_SUCCESS) {
        real.Group_compare(actual, group, &same);
        real.Group_free(&actual);
    }
    if (same != MPI_IDENT)
        return refusal_code(create_from_group,
                            "The MPI library made a communicator of other processes than the group's.");
    if (gate.phase != Phase::closed) return MPI_SUCCESS;
    return check_made(begin_construction(create_from_group, no_parent(), {members, {}}, Topology{},
                                         std::string(create_from_group) + " " + tag),
                      made, constants.comm_null);
}

}  // namespace

int Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm) {
    auto call = [&](MPI_Comm* made) {
        return real.Comm_create_from_group(group, stringtag, info, errhandler, made);
    };
    if (group == constants.group_null || group == constants.group_empty || !stringtag) return call(newcomm);
    if (!newcomm) return raise_through(errhandler, group, MPI_ERR_ARG);
    std::vector<std::int32_t> members;
    const std::string why = why_not_here(group, stringtag, members);
    if (!why.empty()) {
        if (refusal_waived(create_from_group)) return call(newcomm);
        *newcomm = constants.comm_null;
        return raise_through(errhandler, group, refuse_group(members, errhandler, why));
    }
    MPI_Comm made = constants.comm_null;
    *newcomm = constants.comm_null;
    if (int code = progress_barrier_of_group(group, stringtag); code != MPI_SUCCESS)
        return raise_through(errhandler, group, code);
    if (int code = call(&made); code != MPI_SUCCESS || made == constants.comm_null) return code;
    if (int code = check(group, stringtag, members, made); code != MPI_SUCCESS)
        return raise_through(errhandler, group, code);
    *newcomm = made;
    return MPI_SUCCESS;
}

}  // namespace mpisec::shim
