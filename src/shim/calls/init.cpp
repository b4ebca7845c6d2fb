// The life of MPIsec in a process:
//
//   MPI_Init       the gate lets only this thread pass (gate.hpp) → real MPI_Init → settings → key exchange
//                  (bootstrap) → error class, communicators → the gate closes: calls are protected
//   MPI_Finalize   the delete callback of an attribute of MPI_COMM_SELF, set first and so run last (MPI
//                  standard section 11.4.2): detached operations end, counts are compared (S8), keys are
//                  wiped, threads joined (M14) → the rest of MPI_Finalize. The gate stays closed.
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <numeric>

#include "base/startup_pages.hpp"
#include "config/launched.hpp"
#include "fabric/node_arena.hpp"
#include "shim/calls/entry.hpp"
#include "shim/collective/collective_choice.hpp"
#include "shim/dynamic/worlds.hpp"
#include "shim/io/entry.hpp"
#include "shim/p2p/channel_tags.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/message_audit.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/progress_thread.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/runtime/device.hpp"
#include "shim/runtime/early_exit.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/node_peers.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/stats_writer.hpp"
#include "shim/runtime/threads.hpp"
#include "shim/runtime/transports.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/sessions/life.hpp"
#include "shim/startup/bootstrap.hpp"

namespace mpisec::shim {
namespace {

int shut_down(MPI_Comm, int, void*, void*) {
    if (gate.phase == Phase::closed) end_protection();
    return MPI_SUCCESS;
}

/// Registers a communicator that start-up knows all about.
Communicator* know(MPI_Comm comm, const Membership& membership, const char* name) {
    if (read_membership(comm) != membership)
        abort_job(std::string(name) + " does not have the ranks that it must have: something between the " +
                  "nodes changes the MPI library's messages.");
    return adopt(comm, membership, derive_context(no_parent(), name, membership));
}

/// Where collectives on MPI_COMM_WORLD travel: on the channel, so that MPI_Init needs no further communicator, or on a shadow communicator
/// where the channel has too few tags.
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

/// No exchange is needed to know what they consist of.
void know_first_communicators() {
    Membership everyone{std::vector<std::int32_t>(static_cast<std::size_t>(state.world.size))};
    std::iota(everyone.members.begin(), everyone.members.end(), 0);
    Communicator* world = know(constants.comm_world, everyone, "MPI_COMM_WORLD");
    know(constants.comm_self, {{state.world.rank}}, "MPI_COMM_SELF");
    know(state.world.channel, everyone, "channel")->traffic = Traffic::own;
    equip(*world, blocks_of_world(everyone));
}

void protect() {
    make_peer_states();
    open_records();
    make_ready(constants.comm_world);
    real.Comm_set_errhandler(state.world.channel, constants.errors_return);
    know_first_communicators();
    make_selection();
}

/// Sets what MPI_Finalize does before all else. Also for a world on one node, which may still meet others.
void call_at_end() {
    int keyval = 0;
    real.Comm_create_keyval(constants.comm_null_copy_fn, shut_down, &keyval, nullptr);
    real.Comm_set_attr(constants.comm_self, keyval, nullptr);
    real.Comm_free_keyval(&keyval);
}

/// A job of several processes each of which is a world of its own sends nothing, so nothing would seem wrong.
void refuse_lonely_worlds() {
#ifdef OPEN_MPI
    constexpr auto family = config::PmiFamily::openmpi;
#else
    constexpr auto family = config::PmiFamily::mpich;
#endif
    int size = 0;
    if (state.settings.singleton_allow || real.Comm_size(constants.comm_world, &size) != MPI_SUCCESS ||
        size > 1)
        return;
    const std::string sentence = config::alone_in_world(family, config::launched_processes(family));
    if (!sentence.empty()) abort_job(sentence);
}

/// Does not take back what the program's sessions may do; another thread may be in the start-up of one.
void take_thread_level(int thread_level, bool closed_before) {
    const std::lock_guard lock(process.life);
    if (!closed_before) {
        state.thread_multiple = thread_level == MPI_THREAD_MULTIPLE || process.open_sessions > 0;
        start_sealing_lock(thread_level);
    }
    start_watchdog();
}

/// Learns who the ranks of MPI_COMM_WORLD are, and their secret.
void know_world() {
    WaitScope waiting("MPI_Init (key exchange)", MPI_ANY_SOURCE, MPI_ANY_TAG);
    World world = establish(state.settings, selection_mark());
    const std::lock_guard lock(process.life);
    // A session may have chosen the library before, for the same cipher, since settings are read once: its keys are renewed with that
    // library.
    if (state.world.selection.library[0]) world.selection = state.world.selection;
    state.world = std::move(world);
}

/// For a job on one node: tells a user who asked for figures why there are none.
void say_why_nothing_is_counted() {
    const char* asked = !state.settings.stats.empty()   ? "MPISEC_STATS"
                        : !state.settings.trace.empty() ? "MPISEC_TRACE"
                                                        : nullptr;
    if (asked && state.world.rank == 0)
        say(std::string(asked) +
            ": all ranks of this job are on this node, so MPIsec seals nothing and has nothing to tell");
}

/// By now rank 0 has connected to other nodes.
void say_what_is_not_authenticated() {
    using Connections = config::Settings::Connections;
    if (state.world.rank == 0 && state.settings.connections == Connections::authenticate &&
        !process.connections_begun)
        say("MPISEC_CONNECTIONS=authenticate: none of the MPI library's connections was recognized, so they "
            "are as the library makes them; what MPIsec seals is sealed all the same (docs/threat-model.md, "
            "Limits)");
}

/// From the real MPI_Init to protection. Returns the phase that calls meet from here on.
Phase start(int thread_level, bool closed_before) {
    real.Comm_rank(constants.comm_world, &state.world.rank);
    if (const std::string wrong = load_settings(); !wrong.empty()) abort_job(wrong);
    const std::uint64_t began = steady_nanoseconds();
    refuse_lonely_worlds();
    take_thread_level(thread_level, closed_before);
    know_world();
    state.fault_tolerant = job_is_fault_tolerant();
    using Yield = config::Settings::Yield;
    if (state.settings.yield == Yield::on ||
        (state.settings.yield == Yield::automatic && state.world.oversubscribed))
        state.yield_while_waiting = true;
    gate.single_node = !state.world.crosses_nodes;
    call_at_end();
    if (gate.single_node && !closed_before && !has_parents()) {
        stop_watchdog();
        say_why_nothing_is_counted();
        release_startup_pages();
        return Phase::open;
    }
    gate.single_node ? make_peer_states() : protect();
    say_what_is_not_authenticated();
    join_parents();
    end_job_on_early_exit();
    watch_for_driver();
    start_progress_thread(thread_level == MPI_THREAD_MULTIPLE);
    stats.began = steady_nanoseconds();
    stats.startup_nanoseconds = stats.began - began;
    start_stats_writer();
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
        starting.end(start(level, starting.closed_before()));
    return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
    Starting starting;
    fabric::NodeArena::expect();
    const int code = real.Init_thread(argc, argv, required, provided);
    if (starting && code == MPI_SUCCESS) starting.end(start(*provided, starting.closed_before()));
    return code;
}

void start_world_of_session() {
    Starting starting;
    int level = MPI_THREAD_SINGLE;
    if (starting && real.Query_thread(&level) == MPI_SUCCESS)
        starting.end(start(level, starting.closed_before()));
}

namespace {

/// Sessions may outlive the world (MPI 4.1, section 11.3). An open one needs what MPIsec keeps until the library's MPI_Finalize, and Open
/// MPI's own MPI_COMM_SELF, without which its reductions crash.
bool put_off_finalize() {
    const std::lock_guard lock(process.life);
    if (gate.phase != Phase::closed || process.open_sessions == 0) return false;
    process.finalize_put_off = true;
    return true;
}

}  // namespace

int Finalize() {
    pass_gate("MPI_Finalize");
    if (put_off_finalize()) return MPI_SUCCESS;
    // The gate does not open again: delete callbacks of other communicators may run after shut_down and still communicate (MPICH), and so
    // may threads that call too late. MPIsec knows no communicator then, so their calls are refused, never let through in clear (S1).
    return real.Finalize();
}

}  // namespace mpisec::shim
