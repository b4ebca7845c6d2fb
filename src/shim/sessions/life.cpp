#include "shim/sessions/life.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "fabric/node_arena.hpp"
#include "shim/collective/collective_choice.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/io/entry.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/message_audit.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/progress_thread.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/same_node.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/partitioned/messages.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/entry.hpp"
#include "shim/runtime/device.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/node_peers.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/stats.hpp"
#include "shim/runtime/stats_writer.hpp"
#include "shim/runtime/threads.hpp"
#include "shim/runtime/trace.hpp"
#include "shim/runtime/transports.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {

/// Under `life`.
struct LoadedSettings {
    bool loaded = false;
    std::string wrong;  ///< empty, or what is wrong with them
};

/// A session of MPIsec's own, for the communicator of this process alone where there is no MPI_COMM_SELF.
struct OwnSession {
    MPI_Session session{};
    bool open = false;
};

namespace {

/// Makes the communicator on which MPIsec sends to itself.
void make_private_self() {
    if (world_model_is_on()) {
        check_mpi(real.Comm_dup(constants.comm_self, &state.private_self), "MPI_Comm_dup");
        return;
    }
    OwnSession& own = *process.own_session;
    MPI_Group self;
    if (real.Session_init(constants.info_null, constants.errors_return, &own.session) != MPI_SUCCESS ||
        real.Group_from_session_pset(own.session, "mpi://SELF", &self) != MPI_SUCCESS ||
        real.Comm_create_from_group(self, "mpisec.self", constants.info_null, constants.errors_return,
                                    &state.private_self) != MPI_SUCCESS)
        abort_job("The MPI library could not make a communicator of this process alone from a session.");
    real.Group_free(&self);
    own.open = true;
}

/// Receives one message that nobody asked for, and throws it away. False when there is none.
bool take_unmatched(MPI_Comm comm) {
    constexpr int longest_wait = 1000;  // milliseconds; its sender may have ended
    int found = 0, bytes = 0;
    MPI_Message message;
    MPI_Status status;
    if (real.Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &message, &status) != MPI_SUCCESS || !found)
        return false;
    real.Get_count(&status, constants.byte, &bytes);
    auto room = std::make_unique<Buffer>(static_cast<std::size_t>(std::max(bytes, 0)) + 1);
    MPI_Request receiving;
    if (real.Imrecv(room->data(), bytes, constants.byte, &message, &receiving) != MPI_SUCCESS) return false;
    int done = 0;
    for (int waited = 0; !done && waited < longest_wait; ++waited) {
        if (real.Test(&receiving, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
        if (!done) usleep(1000);
    }
    if (!done) (void)room.release();  // MPI may still write there
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): intended, see above
    return done != 0;
}

/// After an attack, parts of rejected messages may lie on the channel. MPICH ends a process that frees a communicator with such
/// messages.
void take_all_unmatched(MPI_Comm comm) {
    constexpr int most = 1000;
    for (int taken = 0; taken < most && take_unmatched(comm); ++taken) {
    }
}

/// Frees MPIsec's own communicators, so that nothing of them is left either (M14). Every rank has the same ones.
void free_communicators() {
    if (state.world.job_secret) {
        take_all_unmatched(state.world.channel);
        if (Communicator* world = find_communicator(constants.comm_world)) unequip(*world);
        real.Comm_free(&state.world.channel);
    }
    real.Cancel(&state.never);
    real.Wait(&state.never, MPI_STATUS_IGNORE);
    free_heirs();
    real.Comm_free(&state.private_self);
    OwnSession& own = *process.own_session;
    if (own.open) real.Session_finalize(&own.session);
    own.open = false;
}

/// MPICH 4.0 may hang in MPI_Finalize across nodes when one rank gets there much sooner than another, with or
/// without MPIsec (seen on 4.0.2 with UCX: it closes a connection by a request that the other side must answer, but that
/// side may have stopped polling). All ranks have just met in final_barrier(): waits a moment more so that the last one can
/// get there, and where the meeting took long, as with many more ranks than cores, twice as long as that.
void wait_for_mpich_4_0(std::chrono::steady_clock::duration meeting) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    real.Get_library_version(version, &length);
    const char* number = std::strstr(version, "MPICH Version:");
    if (number && std::strstr(number, "4.0.") != nullptr && std::strstr(number, "4.0.") < number + 32)
        std::this_thread::sleep_for(std::clamp<std::chrono::steady_clock::duration>(
            2 * meeting, std::chrono::milliseconds(20), std::chrono::seconds(10)));
}

/// Without MPI_COMM_WORLD the processes do not leave together: the library ends with the last session of each. Data that
/// arrives late and lies unread when the library closes its connections would reset them, and what it has sent and another
/// process has not read yet would be lost. So what arrives is read for a moment more.
void linger() {
    constexpr auto moment = std::chrono::milliseconds(50);
    for (const auto end = std::chrono::steady_clock::now() + moment;
         std::chrono::steady_clock::now() < end;) {
        int flag = 0;
        real.Test(&state.never, &flag, MPI_STATUS_IGNORE);
        usleep(1000);
    }
}

/// A session says what its threads may do, but not to whom it does not ask.
void expect_threads() {
    state.thread_multiple = true;
    start_sealing_lock(MPI_THREAD_MULTIPLE);
}

/// When the MPI library begins anew, it may give something else a handle that the program has left behind.
void forget_handles() {
    process.types.forget();
    process.type_layouts.forget();
    type_generation.fetch_add(1, std::memory_order_relaxed);
    process.operations.forget();
    process.sent_to_self.forget();
    process.files.forget();
    process.windows.forget();
    process.refused_calls.forget();  // their error codes belonged to the library
}

/// Nothing of the realm is used any more.
void close_realm(Realm& realm) {
    if (realm.job_secret) {
        if (Communicator* channel = find_communicator(realm.channel)) forget(*channel);
        real.Comm_free(&realm.channel);
    }
    real.Group_free(&realm.group);
    forget_parent(realm);
    remove_realm(realm);
}

}  // namespace

std::string load_settings() {
    const std::lock_guard lock(process.life);
    LoadedSettings& once = *process.loaded_settings;
    if (once.loaded) return once.wrong;
    once.loaded = true;
    Result<config::Settings> settings = config::load();
    if (!settings) {
        once.wrong = settings.error().message;
        return once.wrong;
    }
    state.settings = std::move(*settings);
    state.timed = !state.settings.stats.empty() || !state.settings.trace.empty();
    start_trace();
    read_selection();
    if (!process.world_begun) expect_threads();
    return once.wrong;
}

void make_ready(MPI_Comm comm) {
    const std::lock_guard lock(process.life);
    if (state.ready) return;
    register_errors();
    int* upper_bound = nullptr;
    int found = 0;
    real.Comm_get_attr(comm, MPI_TAG_UB, &upper_bound, &found);
    if (found) state.tag_upper_bound = *upper_bound;
    make_private_self();
    real.Comm_set_errhandler(state.private_self, constants.errors_return);
    real.Irecv(nullptr, 0, constants.byte, 0, state.tag_upper_bound, state.private_self, &state.never);
    process.move_all = progress;
    state.ready = true;
}

void begin_after_world() {
    const std::lock_guard lock(process.life);
    const Phase phase = gate.phase;
#ifdef OPEN_MPI  // its processes do not find each other again
    const bool may_go_on = phase == Phase::open;
#else
    const bool may_go_on = phase == Phase::open || phase == Phase::ended;
#endif
    if (!may_go_on || !process.world_begun || world_model_is_on()) return;
    World none;
    none.selection = state.world.selection;
    state.world = std::move(none);
    state.ending = false;
    gate.single_node = false;
    expect_threads();
    forget_handles();
    process.world_begun = false;
    process.world_is_over = true;
}

void close_gate() {
    std::unique_lock lock(process.life);
    // MPI_Init in another thread comes first: it waits for no session.
    while (starts_elsewhere()) {
        lock.unlock();
        wait_for_start();
        lock.lock();
    }
    if (gate.phase == Phase::closed) return;
    if (world_model_is_on()) make_peer_states();
    start_watchdog();
    if (stats.began == 0) stats.began = steady_nanoseconds();
    protect_from_now_on();
    if (!world_model_is_on()) start_progress_thread(process.session_with_threads);
}

void close_unused_realms() {
    std::vector<Realm*> unused;
    {
        Guard guard;  // two threads may free the last two communicators of one realm
        for (Realm* realm : further_realms()) {
            if (!realm->job_secret || !realm->handed_out || in_use(*realm)) continue;
            realm->handed_out = false;  // so that no other thread closes it too
            unused.push_back(realm);
        }
    }
    // This may take a while, in which other threads go on.
    for (Realm* realm : unused) take_all_unmatched(realm->channel);
    Guard guard;
    for (Realm* realm : unused) close_realm(*realm);
}

int give_up_realm(Realm& realm, int code) {
    take_all_unmatched(realm.channel);
    Guard guard;
    close_realm(realm);
    return code;
}

void forget_one_node_groups() {
    forget_handles();
    for (Realm* realm : further_realms()) close_realm(*realm);
    forget_peer_states();
    forget_realms();
}

void end_protection() {
    const bool world_is_protected = state.world.job_secret.has_value();
    stop_progress_thread();
    finish_detached();
    const AuditEnd audit = world_is_protected ? audit_messages() : AuditEnd::known;
    forget_rejections();
    process.node_peers->forget();  // from here on the ranks end, each in its own time
    const auto begun_to_meet = std::chrono::steady_clock::now();
    if (world_is_protected) final_barrier(audit);
    const auto meeting = std::chrono::steady_clock::now() - begun_to_meet;
    io::forget_files();
    rma::close_windows();
    stop_stats_writer();
    print_stats(replay_runs());
    write_trace();
    report_transports();
    stop_watchdog();
    const bool world = world_model_is_on();
    if (!world) linger();
    gate.phase = world || process.world_is_over ? Phase::ended : Phase::before;
    process.move_all = nullptr;
    forget_notices();
    for (Realm* realm : further_realms()) {
        if (realm->job_secret) take_all_unmatched(realm->channel);
        close_realm(*realm);
    }
    free_communicators();
    state.ending = world;
    free_requests();
    if (world_is_protected) wait_for_mpich_4_0(meeting);
    forget_partitioned_messages();
    // Before the counters go: a thread that calls too late finds no key, instead of a counter that begins again.
    state.world.job_secret.reset();
    state.engine.reset();
    forget_peer_states();
    if (world_is_protected) close_records();
    forget_all();
    forget_realms();
    if (world_is_protected) fabric::NodeArena::close();
    release_device_memory();
    empty_pool();
    if (!world) forget_handles();
    state.ready = false;
}

}  // namespace mpisec::shim
