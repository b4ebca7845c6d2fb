#include "shim/p2p/progress_thread.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "shim/p2p/operation.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/own_thread.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

struct ProgressThread {
    std::thread thread;
    std::atomic<bool> stop = false;
};

namespace {

// The pauses while something is under way, and while nothing is.
constexpr std::chrono::microseconds pause_between_passes(20), pause_when_idle(1000);

void run(ProgressThread& self) {
    pthread_setname_np(pthread_self(), "mpisec-progress");
    while (!self.stop.load(std::memory_order_acquire)) {
        const bool busy = work_outstanding();
        if (busy) progress();
        std::this_thread::sleep_for(busy ? pause_between_passes : pause_when_idle);
    }
}

}  // namespace

void start_progress_thread(bool granted) {
    const std::lock_guard lock(process.life);  // MPI_Init in one thread, a session in another
    if (state.settings.progress != config::Settings::Progress::thread || process.progress_thread) return;
    if (!granted) {
        if (state.world.rank == 0)
            say("MPISEC_PROGRESS=thread has no effect: the program was not granted MPI_THREAD_MULTIPLE "
                "(by MPI_Init_thread, or as `thread_level` of a session), so only its own threads may call "
                "MPI");
        return;
    }
    process.progress_thread = new ProgressThread;
    if (start_thread(process.progress_thread->thread, [] { run(*process.progress_thread); })) return;
    say("MPISEC_PROGRESS=thread has no effect: there is no thread left for it");
    delete process.progress_thread;
    process.progress_thread = nullptr;
}

void stop_progress_thread() {
    if (!process.progress_thread) return;
    process.progress_thread->stop.store(true, std::memory_order_release);
    process.progress_thread->thread.join();
    delete process.progress_thread;
    process.progress_thread = nullptr;
}

}  // namespace mpisec::shim
