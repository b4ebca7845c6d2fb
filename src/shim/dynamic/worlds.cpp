#include "shim/dynamic/worlds.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "shim/p2p/operation.hpp"
#include "shim/p2p/progress_barrier.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/sessions/life.hpp"
#include "shim/sessions/start_up.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

// The program's messages follow these, and MPI keeps messages in order.
constexpr int greeting_tag = 32766;

/// Unauthenticated, like hellos: says only that the other world has MPIsec. Without greetings, this process would wait
/// inside the library for a world without MPIsec.
using Greeting = std::array<char, 16>;
constexpr Greeting greeting{"mpisec world 2"};

[[noreturn]] void abort_unprotected(const char* procedure, const char* why) {
    abort_job(std::string(procedure) + ": the other world " + why +
              ". It is not handed out, and nothing of this program was sent to it: start its programs with "
              "`mpisec exec`, of the same version of MPIsec.");
}

/// Waits at most MPISEC_JOIN_TIME for all of them together.
void wait_for_greetings(const char* procedure, std::vector<MPI_Request>& requests) {
    const double limit = state.settings.join_seconds;
    config::Settings patient = state.settings;
    patient.stall_seconds = 0;  // the limit below is reported instead
    StallClock clock(patient, "the other world");
    for (MPI_Request& request : requests)
        for (int done = 0; !done;) {
            check_mpi(real.Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
            if (!done && clock.seconds() > limit)
                abort_unprotected(
                    procedure,
                    "does not answer: it is not protected, or needs longer than MPISEC_JOIN_TIME "
                    "to call MPI_Init");
            clock.look();
        }
}

/// With how many processes of the other side this process exchanges greetings. In small worlds each process greets each of the other
/// side, so that processes that were there before hear from the others before they send to them: over libfabric's tcp, when two
/// processes that have just been connected open their first connection from both sides at once, a message may be lost (MPICH 5.0.2 with
/// libfabric 2.5.1: MPI_Intercomm_merge hangs, or finds its messages truncated, in one of a hundred spawned worlds on a busy machine).
int greeted_by_each(Side side, MPI_Comm inter) {
    constexpr int most_pairs = 4096;
    int rank = 0, size = 0, remote_size = 0;
    real.Comm_rank(inter, &rank);
    real.Comm_size(inter, &size);
    real.Comm_remote_size(inter, &remote_size);
    if (side != Side::either && size <= most_pairs / remote_size) return remote_size;
    return rank == 0 ? 1 : 0;
}

/// The first side, whose programs were there before, sends nothing until it has received the other side's greetings: a send to a
/// world that does not call MPI may wait inside the library. A process that exchanges no greetings waits for the others in the steps
/// that follow.
void greet(const char* procedure, Side side, MPI_Comm inter) {
    const auto others = static_cast<std::size_t>(greeted_by_each(side, inter));
    std::vector<Greeting> theirs(others);
    std::vector<MPI_Request> receiving(others), sending(others);
    const int bytes = static_cast<int>(greeting.size());
    auto send = [&] {
        for (std::size_t other = 0; other < others; ++other)
            check_mpi(real.Isend(greeting.data(), bytes, constants.byte, static_cast<int>(other),
                                 greeting_tag, inter, &sending[other]),
                      "MPI_Isend");
    };
    for (std::size_t other = 0; other < others; ++other)
        check_mpi(real.Irecv(theirs[other].data(), bytes, constants.byte, static_cast<int>(other),
                             greeting_tag, inter, &receiving[other]),
                  "MPI_Irecv");
    if (side != Side::first) send();
    wait_for_greetings(procedure, receiving);
    if (std::ranges::any_of(theirs, [](const Greeting& one) { return one != greeting; }))
        abort_unprotected(procedure, "has another version of MPIsec");
    if (side == Side::first) send();
    wait_for_greetings(procedure, sending);
}

bool local_group_is(MPI_Group local, MPI_Comm inter) {
    MPI_Group actual;
    int same = MPI_UNEQUAL;
    real.Comm_group(inter, &actual);
    real.Group_compare(actual, local, &same);
    real.Group_free(&actual);
    return same == MPI_IDENT;
}

/// Takes who is on which side, and in which order, from what all said of themselves, which their handshakes have proven.
Membership sides_of(const Realm& realm, const std::vector<Hello>& hellos) {
    const Hello& own = hellos[static_cast<std::size_t>(realm.rank)];
    std::vector<std::pair<std::int32_t, std::int32_t>> groups[2];
    for (std::size_t rank = 0; rank < hellos.size(); ++rank)
        groups[hellos[rank].side != own.side].emplace_back(hellos[rank].rank_on_side,
                                                           realm.first + static_cast<std::int32_t>(rank));
    Membership sides{{}, {}, true};
    for (std::size_t group = 0; group < 2; ++group) {
        std::ranges::sort(groups[group]);
        for (const auto& [place, number] : groups[group])
            (group == 0 ? sides.members : sides.remote_members).push_back(number);
    }
    return sides;
}

bool has_first(MPI_Group local, MPI_Comm all) {
    MPI_Group everyone;
    const int first = 0;
    int place = MPI_UNDEFINED;
    real.Comm_group(all, &everyone);
    real.Group_translate_ranks(everyone, 1, &first, local, &place);
    real.Group_free(&everyone);
    return place != MPI_UNDEFINED;
}

/// Makes a communicator of all processes of both sides. Decides `side` where either side could come first.
MPI_Comm merge(const char* procedure, Side& side, MPI_Group local, MPI_Comm inter) {
    greet(procedure, side, inter);
    MPI_Comm all = constants.comm_null;
    WaitScope waiting(procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
    check_mpi(real.Intercomm_merge(inter, side == Side::second, &all), "MPI_Intercomm_merge");
    if (side == Side::either) side = has_first(local, all) ? Side::first : Side::second;
    return all;
}

/// Gives the program `made` when the two groups in it are those of the call.
int hand_out_joined(const Joining& joining, Realm& realm, const Place& place,
                    const std::vector<Hello>& hellos, MPI_Comm made) {
    const auto& [procedure, call, side_of_call, local, remote, job_ranks, remote_job_ranks, judge] = joining;
    const Membership sides = sides_of(realm, hellos);
    // All processes of this side know who belongs to it without having been told.
    const bool knows_remote = remote != constants.group_null;
    if (!are_processes(hellos, place.side, job_ranks) || numbers_of(local, realm) != sides.members)
        return report_wrong_communicator(procedure, "its local group is another than that of the call");
    std::uint8_t fits = are_processes(hellos, 1 - place.side, remote_job_ranks) &&
                        (!knows_remote || numbers_of(remote, realm) == sides.remote_members);
    if (judge >= 0)
        if (const int code = hand_down(sides.members, static_cast<std::size_t>(judge), &fits, sizeof fits,
                                       no_parent(realm).context);
            code != MPI_SUCCESS)
            return code;
    if (!fits)
        return report_wrong_communicator(procedure, "its remote group is another than that of the call");
    return hand_out_first(realm, procedure, call, sides, made);
}

}  // namespace

int join_worlds(const Joining& joining, MPI_Comm made) {
    const auto& [procedure, call, side_of_call, local, remote, job_ranks, remote_job_ranks, judge] = joining;
    Side side = side_of_call;
    make_ready(made);
    if (!local_group_is(local, made))
        return report_wrong_communicator(procedure, "its local group is another than that of the call");
    MPI_Comm all = merge(procedure, side, local, made);
    int on_side = 0;
    real.Group_rank(local, &on_side);
    const Place place{side == Side::second ? 1u : 0u, static_cast<std::uint32_t>(on_side),
                      job_ranks.empty() ? -1 : job_ranks[static_cast<std::size_t>(on_side)]};
    const std::vector<Hello> hellos = meet_strangers(all, call, place);
    Realm& realm = start_realm(all, hellos);
    real.Comm_free(&all);
    const int code = hand_out_joined(joining, realm, place, hellos, made);
    return code == MPI_SUCCESS ? code : give_up_realm(realm, code);
}

bool has_parents() {
    MPI_Comm parents = constants.comm_null;
    return real.Comm_get_parent(&parents) == MPI_SUCCESS && parents != constants.comm_null;
}

void join_parents() {
    if (!has_parents()) return;
    MPI_Comm parents = constants.comm_null;
    real.Comm_get_parent(&parents);
    MPI_Group everyone;
    real.Comm_group(constants.comm_world, &everyone);
    const int code = join_worlds(
        {"MPI_Comm_get_parent", "MPI_Comm_spawn", Side::second, everyone, constants.group_null}, parents);
    real.Group_free(&everyone);
    if (code != MPI_SUCCESS) abort_job("The world that spawned this one could not be joined.");
}

}  // namespace mpisec::shim
