// The life of MPIsec in a process:
//
//   MPI_Init       real MPI_Init → settings → key exchange (bootstrap) → error class, communicators → the
//   gate closes: calls are protected MPI_Finalize   the delete callback of an attribute of MPI_COMM_SELF, set
//   first and so run last (MPI standard section 11.4.2): detached
//                  operations end, counts are compared (S8), keys are wiped, threads joined (M14) → the rest
//                  of MPI_Finalize → the gate opens
#include <unistd.h>

#include <cstring>

#include "shim/collective_choice.hpp"
#include "shim/communicator.hpp"
#include "shim/constants.hpp"
#include "shim/entry.hpp"
#include "shim/errors.hpp"
#include "shim/operation.hpp"
#include "shim/pair.hpp"
#include "shim/pool.hpp"
#include "shim/real.hpp"
#include "shim/refusals.hpp"
#include "shim/requests.hpp"
#include "shim/state.hpp"
#include "shim/stats.hpp"
#include "shim/tally.hpp"
#include "shim/threads.hpp"
#include "shim/transports.hpp"
#include "shim/watchdog.hpp"

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
/// without MPIsec (seen on 4.0.2 with UCX). All ranks have just met in compare_tallies(): a moment more lets
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
    compare_tallies();
    forget_refusals();
    leave_together();
    print_stats();
    report_transports();
    stop_watchdog();
    free_communicators();
    state.ending = true;
    free_requests();
    wait_for_mpich_4_0();
    state.engine.reset();
    forget_pairs();
    state.world.master.reset();
    forget_all();
    empty_pool();
    return MPI_SUCCESS;
}

void protect() {
    make_pairs();
    register_errors();
    int* upper_bound = nullptr;
    int found = 0;
    real.Comm_get_attr(constants.comm_world, MPI_TAG_UB, &upper_bound, &found);
    if (found) state.tag_upper_bound = *upper_bound;
    real.Comm_dup(constants.comm_self, &state.private_self);
    real.Irecv(nullptr, 0, constants.byte, 0, state.tag_upper_bound, state.private_self, &state.never);
    real.Comm_set_errhandler(state.world.channel, constants.errors_return);
    if (int code = equip(*adopt(constants.comm_world, nullptr, "MPI_COMM_WORLD")); code != MPI_SUCCESS)
        abort_job("the MPI library could not make a communicator for collectives");
    adopt(constants.comm_self, nullptr, "MPI_COMM_SELF");
    adopt(state.world.channel, nullptr, "channel");
    int keyval = 0;
    real.Comm_create_keyval(constants.comm_null_copy_fn, shut_down, &keyval, nullptr);
    real.Comm_set_attr(constants.comm_self, keyval, nullptr);
    real.Comm_free_keyval(&keyval);
    gate.bypass = false;
}

void start(int thread_level) {
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
        state.world = establish(state.settings);
    }
    using Yield = config::Settings::Yield;
    state.yields = state.settings.yield == Yield::on ||
                   (state.settings.yield == Yield::automatic && state.world.crowded);
    gate.single_node = !state.world.crosses_nodes;
    if (gate.single_node)
        stop_watchdog();
    else
        protect();
}

}  // namespace

int Init(int* argc, char*** argv) {
    const int code = real.Init(argc, argv);
    int level = MPI_THREAD_SINGLE;  // a library may be set to give more than MPI_Init asks for
    if (code == MPI_SUCCESS && real.Query_thread(&level) == MPI_SUCCESS) start(level);
    return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int code = real.Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS) start(*provided);
    return code;
}

int Finalize() {
    const int code = real.Finalize();
    // Not sooner: delete callbacks of other communicators may run after shut_down and still communicate
    // (MPICH). MPIsec knows no communicator then, so they are refused, never let through in clear (S1).
    gate.bypass = true;
    return code;
}

}  // namespace mpisec::shim
