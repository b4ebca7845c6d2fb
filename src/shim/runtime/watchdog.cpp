#include "shim/runtime/watchdog.hpp"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/node_peers.hpp"
#include "shim/runtime/own_thread.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

struct WaitSlots {
    std::mutex mutex;
    std::list<std::shared_ptr<WaitSlot>> all;
};

struct Watchdog {
    std::thread thread;
    std::mutex mutex;
    std::condition_variable wake;
    bool stop = false;
};

namespace {

constexpr Watchdog*& watchdog = process.watchdog;

using Clock = std::chrono::steady_clock;
using StallAction = config::Settings::StallAction;

// Seconds. After the first, a wait makes the watchdog look whether the other ranks of the node still run. The launcher, which nearly always
// ends the job, then has the second to do so before the watchdog does.
constexpr double death_limit = 10, launcher_limit = 5;
// How long MPI_Abort may take before the process ends itself.
constexpr unsigned abort_limit = 10;

std::string name_of(int value, int wildcard, const char* any) {
    return value == wildcard ? any : std::to_string(value);
}

/// Ends the process by SIGABRT, for which the program may have a handler; where it blocks SIGABRT, or its handler goes on, by SIGKILL.
[[noreturn]] void end_process() {
    struct sigaction action;
    if (sigaction(SIGABRT, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) signal(SIGABRT, SIG_DFL);
    kill(getpid(), SIGABRT);
    sleep(abort_limit);
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

void report(const char* call, int peer, int tag, double seconds) {
    std::string sentence =
        std::string("stalled: waiting in ") + call + " for rank " + name_of(peer, MPI_ANY_SOURCE, "any") +
        ", tag " + name_of(tag, MPI_ANY_TAG, "any") + ", since " +
        std::to_string(static_cast<long>(seconds)) +
        " s; a message may have been lost or held back on the way, or its sender may be late or dead";
    if (const unsigned forks = gate.forks.load(std::memory_order_relaxed))
        sentence +=
            "; this process has forked " + std::to_string(forks) + (forks == 1 ? " time" : " times") +
            " since MPI_Init: a child that goes on using the connections takes messages meant for its parent";
    if (state.settings.stall_action == StallAction::abort) {
        say(sentence + "; aborting the job, as MPISEC_STALL_ACTION=abort asks");
        end_process();  // workers never call MPI (M10); the launcher ends the job when a rank dies
    }
    say(sentence + " (MPISEC_STALL_ACTION=abort ends the job then)");
}

double seconds_since(Clock::time_point time) {
    return std::chrono::duration<double>(Clock::now() - time).count();
}

/// MPI_Abort from a thread of MPIsec's, the only exception to M10: the program's threads wait inside the library for a rank that will never
/// answer, and ending this process alone would not reach ranks of other nodes where the launcher was told to go on without dead ranks.
[[noreturn]] void end_job() {
    std::thread killer;
    start_thread(killer, [] {
        sleep(abort_limit);
        kill(getpid(), SIGKILL);
    });
    real.Abort(constants.comm_world, 1);
    end_process();
}

/// Looks for dead ranks of this node while a call waits long.
struct DeathWatch {
    std::int32_t rank = -1;
    Clock::time_point found;

    void look(const char* call, double waited, double limit);
};

void DeathWatch::look(const char* call, double waited, double limit) {
    if (waited < std::min(death_limit, limit)) return;
    if (rank < 0) {
        rank = process.node_peers->dead();
        found = Clock::now();
        return;
    }
    if (seconds_since(found) < std::min(launcher_limit, limit)) return;
    const std::string sentence =
        "rank " + std::to_string(rank) +
        " of this node has died, and the launcher has not ended the job; this rank waits in " + call +
        " since " + std::to_string(static_cast<long>(waited)) + " s";
    if (state.settings.stall_action == StallAction::report) {
        say(sentence + " (MPISEC_STALL_ACTION=report: the job goes on)");
        process.node_peers->forget();
        rank = -1;
        return;
    }
    say(sentence + "; aborting the job (MPISEC_STALL_ACTION=report lets it go on)");
    wait_before_abort();
    end_job();
}

/// What the watchdog saw of one slot the last time.
struct Watch {
    std::uint64_t sequence = 0;
    Clock::time_point since;
    bool reported = false;
};

void look_at(WaitSlot& slot, Watch& watch, double limit, DeathWatch& deaths) {
    const char* call = slot.call.load(std::memory_order_acquire);
    const std::uint64_t sequence = slot.sequence.load(std::memory_order_relaxed);
    if (!call || sequence != watch.sequence) {
        watch = {sequence, Clock::now(), false};
        return;
    }
    const double seconds = seconds_since(watch.since);
    if (!state.fault_tolerant) deaths.look(call, seconds, limit);  // else the program goes on by itself
    if (seconds < limit || watch.reported) return;
    watch.reported = true;
    report(call, slot.peer.load(std::memory_order_relaxed), slot.tag.load(std::memory_order_relaxed),
           seconds);
}

void run(Watchdog& self) {
    pthread_setname_np(pthread_self(), "mpisec-watchdog");
    const double limit = state.settings.stall_seconds, interval = std::min(limit / 4, launcher_limit);
    DeathWatch deaths;
    std::list<std::pair<std::shared_ptr<WaitSlot>, Watch>> watched;
    std::unique_lock lock(self.mutex);
    while (!self.wake.wait_for(lock, std::chrono::duration<double>(interval), [&] { return self.stop; })) {
        {
            WaitSlots& slots = *process.wait_slots;
            std::lock_guard slots_lock(slots.mutex);
            for (const auto& slot : slots.all) {
                bool known = false;
                for (const auto& [mine, watch] : watched) known = known || mine == slot;
                if (!known) watched.emplace_back(slot, Watch{});
            }
        }
        for (auto& [slot, watch] : watched) look_at(*slot, watch, limit, deaths);
    }
}

}  // namespace

constinit thread_local WaitSlot* wait_slot = nullptr;

WaitSlot& make_wait_slot() {
    auto slot = std::make_shared<WaitSlot>();
    WaitSlots& slots = *process.wait_slots;
    std::lock_guard lock(slots.mutex);
    slots.all.push_back(slot);
    wait_slot = slot.get();  // kept alive by the list: a thread may end while the watchdog looks
    return *wait_slot;
}

void start_watchdog() {
    if (state.settings.stall_seconds <= 0 || watchdog) return;
    watchdog = new Watchdog;
    if (start_thread(watchdog->thread, [] { run(*watchdog); })) return;
    say("there is no thread left for MPISEC_STALL_TIME: nothing will be said of calls that wait long");
    delete watchdog;
    watchdog = nullptr;
}

void stop_watchdog() {
    if (!watchdog) return;
    {
        std::lock_guard lock(watchdog->mutex);
        watchdog->stop = true;
    }
    watchdog->wake.notify_one();
    watchdog->thread.join();
    delete watchdog;
    watchdog = nullptr;
}

}  // namespace mpisec::shim
