// The life of MPIsec in a process:
//
//   MPI_Init       the gate lets only this thread pass (gate.hpp) → real MPI_Init → settings → key exchange
//                  (bootstrap) → error class, communicators → the gate closes: calls are protected
//   MPI_Finalize   the delete callback of an attribute of MPI_COMM_SELF, set first and so run last (MPI
//                  standard section 11.4.2): detached operations end, counts are compared (S8), keys are
//                  wiped, threads joined (M14) → the rest of MPI_Finalize. The gate stays closed.
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "base/startup_pages.hpp"
#include "fabric/node_arena.hpp"
#include "shim/calls/entry.hpp"
#include "shim/collective/collective_choice.hpp"
#include "shim/io/entry.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/message_audit.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/skips.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/runtime/early_exit.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/node_peers.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/threads.hpp"
#include "shim/runtime/transports.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/startup/bootstrap.hpp"

namespace mpisec::shim {
namespace {

/// MPIsec's own, that nothing of them is left either (M14). Every rank has the same ones.
void free_communicators() {
    if (Communicator* world = find_communicator(constants.comm_world)) unequip(*world);
    real.Comm_free(&state.world.channel);
    real.Cancel(&state.never);
    real.Wait(&state.never, MPI_STATUS_IGNORE);
    real.Comm_free(&state.private_self);
}

/// MPICH 4.0 may hang in MPI_Finalize across nodes when a rank is there much sooner than another, with or
/// without MPIsec (seen on 4.0.2 with UCX). All ranks have just met in audit_messages(): a moment more lets
/// the last one come.
void wait_for_mpich_4_0() {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    real.Get_library_version(version, &length);
    const char* number = std::strstr(version, "MPICH Version:");
    if (number && std::strstr(number, "4.0.") != nullptr && std::strstr(number, "4.0.") < number + 32)
        usleep(20'000);
}

int shut_down(MPI_Comm, int, void*, void*) {
    finish_detached();
    audit_messages();
    forget_refusals();
    process.node_peers->forget();  // those that have left together end, each in its own time
    final_barrier();
    io::forget_files();
    rma::close_windows();
    print_stats(replay_runs());
    report_transports();
    stop_watchdog();
    gate.phase = Phase::ended;
    free_communicators();
    state.ending = true;
    free_requests();
    wait_for_mpich_4_0();
    state.engine.reset();
    forget_peer_states();
    close_records();
    state.world.job_secret.reset();
    forget_all();
    fabric::NodeArena::close();
    empty_pool();
    return MPI_SUCCESS;
}

/// A communicator that start-up knows all about.
Communicator* know(MPI_Comm comm, const Membership& membership, const char* name) {
    if (read_membership(comm) != membership)
        abort_job(std::string(name) + " does not have the ranks that it must have: something between the " +
                  "nodes changes the MPI library's messages.");
    return adopt(comm, membership, derive_context(no_parent(), name, membership));
}

/// Where collectives on MPI_COMM_WORLD travel: on the channel, which costs MPI_Init no further communicator,
/// or on a shadow communicator where the channel has too few tags.
TagBlocks blocks_of_world(const Membership& everyone) {
    TagBlocks blocks = blocks_of_channel(everyone.members);
    if (!blocks.none()) return blocks;
    MPI_Comm shadow = constants.comm_null;
    if (make_shadow_communicator(constants.comm_world, everyone, &shadow) != MPI_SUCCESS)
        abort_job("The MPI library could not make a communicator for collectives.");
    if (read_membership(shadow) != everyone)
        abort_job("A communicator for collectives does not have the ranks that it must have: something " +
                  std::string("between the nodes changes the MPI library's messages."));
    return all_blocks(shadow, everyone.members);
}

/// What they consist of needs no exchange.
void know_first_communicators() {
    Membership everyone{std::vector<std::int32_t>(static_cast<std::size_t>(state.world.size))};
    std::iota(everyone.members.begin(), everyone.members.end(), 0);
    Communicator* world = know(constants.comm_world, everyone, "MPI_COMM_WORLD");
    know(constants.comm_self, {{state.world.rank}}, "MPI_COMM_SELF");
    know(state.world.channel, everyone, "channel");
    equip(*world, blocks_of_world(everyone));
}

void protect() {
    make_peer_states();
    open_records();
    register_errors();
    int* upper_bound = nullptr;
    int found = 0;
    real.Comm_get_attr(constants.comm_world, MPI_TAG_UB, &upper_bound, &found);
    if (found) state.tag_upper_bound = *upper_bound;
    real.Comm_dup(constants.comm_self, &state.private_self);
    real.Comm_set_errhandler(state.private_self, constants.errors_return);
    real.Irecv(nullptr, 0, constants.byte, 0, state.tag_upper_bound, state.private_self, &state.never);
    real.Comm_set_errhandler(state.world.channel, constants.errors_return);
    know_first_communicators();
    int keyval = 0;
    real.Comm_create_keyval(constants.comm_null_copy_fn, shut_down, &keyval, nullptr);
    real.Comm_set_attr(constants.comm_self, keyval, nullptr);
    real.Comm_free_keyval(&keyval);
}

/// From the real MPI_Init to protection. Returns what calls meet from here on.
Phase start(int thread_level) {
    real.Comm_rank(constants.comm_world, &state.world.rank);
    Result<config::Settings> settings = config::load();
    if (!settings) abort_job(settings.error().message);
    state.settings = std::move(*settings);
    state.stats = !state.settings.stats.empty();
    read_selection();
    state.thread_multiple = thread_level == MPI_THREAD_MULTIPLE;
    start_sealing_lock(thread_level);
    start_watchdog();
    {
        WaitScope waiting("MPI_Init (key exchange)", MPI_ANY_SOURCE, MPI_ANY_TAG);
        state.world = establish(state.settings, selection_mark());
    }
    using Yield = config::Settings::Yield;
    state.yield_while_waiting = state.settings.yield == Yield::on ||
                                (state.settings.yield == Yield::automatic && state.world.oversubscribed);
    gate.single_node = !state.world.crosses_nodes;
    if (gate.single_node) {
        stop_watchdog();
        release_startup_pages();
        return Phase::open;
    }
    protect();
    end_job_on_early_exit();
    release_startup_pages();
    return Phase::closed;
}

}  // namespace

int Init(int* argc, char*** argv) {
    Starting starting;
    fabric::NodeArena::expect();
    const int code = real.Init(argc, argv);
    int level = MPI_THREAD_SINGLE;  // a library may be set to give more than MPI_Init asks for
    if (starting && code == MPI_SUCCESS && real.Query_thread(&level) == MPI_SUCCESS)
        starting.end(start(level));
    return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
    Starting starting;
    fabric::NodeArena::expect();
    const int code = real.Init_thread(argc, argv, required, provided);
    if (starting && code == MPI_SUCCESS) starting.end(start(*provided));
    return code;
}

int Finalize() {
    pass_gate("MPI_Finalize");
    // The gate does not open again: delete callbacks of other communicators may run after shut_down and still
    // communicate (MPICH), and so may threads that come too late. MPIsec knows no communicator then, so they
    // are refused, never let through in clear (S1).
    return real.Finalize();
}

}  // namespace mpisec::shim
