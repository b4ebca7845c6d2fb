// Sessions, and communicators from their groups. What the MPI library exchanges to make one is metadata. Before the program gets the
// communicator of
//
//   all of MPI_COMM_WORLD      its ranks are compared, and the world's keys serve
//   others, on one node        that is proven by sharing memory (session_proof.hpp): nothing to protect
//   others                     they do a start-up of their own (sessions/start_up.hpp)
#include <mutex>
#include <string>

#include "shim/calls/entry.hpp"
#include "shim/calls/guarded.hpp"
#include "shim/communicators/assertions.hpp"
#include "shim/communicators/session_proof.hpp"
#include "shim/dynamic/worlds.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/handlers.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/sessions/life.hpp"
#include "shim/sessions/start_up.hpp"

namespace mpisec::shim {

namespace {

constexpr const char* create_from_group = "MPI_Comm_create_from_group";
constexpr const char* create_from_groups = "MPI_Intercomm_create_from_groups";

/// Calls the handler that the program gave for the communicator that it does not get: a handler of the program's own is called on a
/// communicator of this process alone; without such a communicator, errors are returned.
int raise_through(const char* call, MPI_Errhandler handler, MPI_Group group, int code) {
    if (handler == constants.errors_return) return code;
    if (handler == constants.errors_are_fatal && world_model_is_on()) end_fatally(code, call);
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
    raise_by(code, [&] { real.Comm_call_errhandler(alone, code); });
    real.Comm_free(&alone);
    return code;
}

int why_too_late(const char* procedure) {
    return gate.phase == Phase::ended && process.world_begun
               ? refusal_code(procedure, "MPI_Finalize has ended protection")
               : MPI_SUCCESS;
}

bool has_group(MPI_Comm made, MPI_Group group) {
    MPI_Group actual;
    int same = MPI_UNEQUAL;
    if (real.Comm_group(made, &actual) != MPI_SUCCESS) return false;
    real.Group_compare(actual, group, &same);
    real.Group_free(&actual);
    return same == MPI_IDENT;
}

/// The arguments of a call of the program.
struct FromGroup {
    MPI_Group group;
    std::string tag;
    MPI_Info info;
    MPI_Errhandler handler;

    int size() const {
        int ranks = 0;
        real.Group_size(group, &ranks);
        return ranks;
    }
    std::string constructor() const { return std::string(create_from_group) + " " + tag; }
    int ask_library(const std::string& said, MPI_Comm* made) const {
        WaitScope waiting(create_from_group, MPI_ANY_SOURCE, MPI_ANY_TAG);
        const HintsForLibrary hints(info);
        return real.Comm_create_from_group(group, said.c_str(), hints.get(), handler, made);
    }
};

Place place_in(MPI_Group group, Ranks job_ranks) {
    int rank = 0;
    real.Group_rank(group, &rank);
    const std::int32_t known = job_ranks.empty() ? -1 : job_ranks[static_cast<std::size_t>(rank)];
    return {0, static_cast<std::uint32_t>(rank), known};
}

/// All processes are in MPI_COMM_WORLD, so the world's keys serve.
int make_in_world(const FromGroup& call, Ranks members, MPI_Comm* newcomm) {
    const int met = progress_barrier(members, group_context(call.tag));
    if (is_failure(met)) return met;
    // After an integrity error, too: the others may have met, and wait for this rank in the library (S8).
    if (const int code = call.ask_library(hidden("tag", call.tag), newcomm); code != MPI_SUCCESS) return code;
    const int code =
        hand_out_first(state.world, create_from_group, call.constructor(), {members.list(), {}}, *newcomm);
    return code != MPI_SUCCESS ? code : met;
}

int wrong_group() {
    return report_wrong_communicator(create_from_group, "it has other processes than the group");
}

/// All processes are proven to be on this node, or nothing is handed out.
int make_on_node(const FromGroup& call, const std::vector<Hello>& hellos, MPI_Comm made) {
    const std::string why = call.size() == 1 ? "" : why_not_on_one_node(call.group, call.tag, hellos);
    if (!why.empty()) return refusal_code(create_from_group, "The group: " + why + ".");
    Realm& realm = know_one_node(call.group);
    if (gate.phase == Phase::ended) {  // in this phase nothing passes that is not known
        make_ready(made);
        close_gate();
    }
    if (gate.phase != Phase::closed) return MPI_SUCCESS;
    return hand_out_first(realm, create_from_group, call.constructor(), {numbers_of(call.group, realm), {}},
                          made);
}

int make_among_strangers(const FromGroup& call, MPI_Comm* newcomm) {
    begin_after_world();
    if (const std::string wrong = load_settings(); !wrong.empty())
        return refusal_code(create_from_group, wrong);
    if (const int code = call.ask_library(hidden("tag", call.tag), newcomm); code != MPI_SUCCESS) return code;
    if (!has_group(*newcomm, call.group)) {
        make_ready(*newcomm);
        return wrong_group();
    }
    if (call.size() == 1) return make_on_node(call, {}, *newcomm);
    const std::vector<std::int32_t> processes = job_ranks(call.group);
    const Place place = place_in(call.group, processes);
    const std::vector<Hello> hellos = meet_strangers(*newcomm, call.constructor(), place);
    if (may_be_one_node(hellos)) return make_on_node(call, hellos, *newcomm);
    Realm& realm = start_realm(*newcomm, hellos);
    if (!are_processes(hellos, place.side, processes)) return give_up_realm(realm, wrong_group());
    const int code = hand_out_first(realm, create_from_group, call.constructor(),
                                    {numbers_of(call.group, realm), {}}, *newcomm);
    return code == MPI_SUCCESS ? code : give_up_realm(realm, code);
}

int make(const FromGroup& call, MPI_Comm* newcomm) {
    if (!world_model_is_on()) return make_among_strangers(call, newcomm);
    const std::vector<std::int32_t> members = numbers_of(call.group, state.world);
    if (static_cast<int>(members.size()) != call.size()) return make_among_strangers(call, newcomm);
    if (gate.phase == Phase::closed) return make_in_world(call, members, newcomm);
    if (const int code = call.ask_library(call.tag, newcomm); code != MPI_SUCCESS) return code;
    return has_group(*newcomm, call.group) ? MPI_SUCCESS : wrong_group();
}

void mark_as_of_session(MPI_Comm made) {
    if (Communicator* known = find_communicator(made)) known->of_session = true;
}

}  // namespace

int Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                           MPI_Comm* newcomm) {
    if (group == constants.group_null || group == constants.group_empty || !stringtag)
        return real.Comm_create_from_group(group, stringtag, info, errhandler, newcomm);
    if (!newcomm) return raise_through(create_from_group, errhandler, group, MPI_ERR_ARG);
    *newcomm = constants.comm_null;
    if (const int code = why_too_late(create_from_group); code != MPI_SUCCESS)
        return raise_through(create_from_group, errhandler, group, code);
    MPI_Comm made = constants.comm_null;
    if (const int code = make({group, stringtag, info, errhandler}, &made); code != MPI_SUCCESS)
        return raise_through(create_from_group, errhandler, group, code);
    mark_as_of_session(made);
    *newcomm = made;
    return MPI_SUCCESS;
}

int Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                 int remote_leader, const char* stringtag, MPI_Info info,
                                 MPI_Errhandler errhandler, MPI_Comm* newcomm) {
    const HintsForLibrary hints(info);
    auto ask = [&](const char* tag, MPI_Comm* made) {
        WaitScope waiting(create_from_groups, MPI_ANY_SOURCE, MPI_ANY_TAG);
        return real.Intercomm_create_from_groups(local_group, local_leader, remote_group, remote_leader, tag,
                                                 hints.get(), errhandler, made);
    };
    auto none = [](MPI_Group group) {
        return group == constants.group_null || group == constants.group_empty;
    };
    // The remote group matters at the leader only (MPI-4.1, section 11.3.2), but MPICH wants a valid one from all ranks.
    int rank = MPI_UNDEFINED;
    if (!none(local_group)) real.Group_rank(local_group, &rank);
    const bool leads = rank == local_leader;
    if (none(local_group) || (leads && none(remote_group)) || !stringtag) return ask(stringtag, newcomm);
    if (!newcomm) return raise_through(create_from_groups, errhandler, local_group, MPI_ERR_ARG);
    *newcomm = constants.comm_null;
    if (const int code = why_too_late(create_from_groups); code != MPI_SUCCESS)
        return raise_through(create_from_groups, errhandler, local_group, code);
    if (const std::string wrong = load_settings(); !wrong.empty())
        return raise_through(create_from_groups, errhandler, local_group,
                             refusal_code(create_from_groups, wrong));
#ifdef OPEN_MPI
    const bool knows_remote = leads;
    const int judge = local_leader;
#else
    const bool knows_remote = !none(remote_group);
    const int judge = -1;
#endif
    const MPI_Group remote = knows_remote ? remote_group : constants.group_null;
    MPI_Comm made = constants.comm_null;
    if (const int code = ask(hidden("tag", stringtag).c_str(), &made); code != MPI_SUCCESS) return code;
    const int code = join_worlds({create_from_groups, std::string(create_from_groups) + " " + stringtag,
                                  Side::either, local_group, remote, job_ranks(local_group),
                                  knows_remote ? job_ranks(remote) : std::vector<std::int32_t>{}, judge},
                                 made);
    if (code != MPI_SUCCESS) return raise_through(create_from_groups, errhandler, local_group, code);
    mark_as_of_session(made);
    *newcomm = made;
    return MPI_SUCCESS;
}

namespace {

/// MPI 4.1, section 11.3.2.
bool grants_threads(MPI_Session session) {
    MPI_Info info;
    if (!real.Session_get_info || real.Session_get_info(session, &info) != MPI_SUCCESS) return false;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0, length = sizeof value;
    real.Info_get_string(info, "thread_level", &length, value, &found);
    real.Info_free(&info);
    return found && std::string(value) == "MPI_THREAD_MULTIPLE";
}

}  // namespace

int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    const bool world_was_on = world_model_is_on();
    const int code = real.Session_init(info, errhandler, session);
    if (code != MPI_SUCCESS) return code;
    if (!world_was_on && world_model_is_on()) start_world_of_session();
    const bool with_threads = grants_threads(*session);
    const std::lock_guard lock(process.life);  // waits while another thread ends protection
    begin_after_world();
    ++process.open_sessions;
    if (with_threads) process.session_with_threads = true;
    return code;
}

namespace {

/// Returns whether the program has no other session.
bool leave_session() {
    const std::lock_guard lock(process.life);
    begin_after_world();
    const bool last = process.open_sessions > 0 && --process.open_sessions == 0;
    if (!last || process.world_begun) return last;
    process.session_with_threads = false;
    if (gate.phase == Phase::closed) {
        end_protection();
    } else {
        forget_one_node_groups();
    }
    return true;
}

}  // namespace

int Session_finalize(MPI_Session* session) {
    close_unused_realms();
    const bool last = leave_session();
    const int code = real.Session_finalize(session);
    if (code != MPI_SUCCESS || !last || !process.finalize_put_off) return code;
    const int ended = real.Finalize();  // the program has called it before
    process.finalize_put_off = false;
    return ended;
}

}  // namespace mpisec::shim
