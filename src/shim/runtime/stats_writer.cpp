#include "shim/runtime/stats_writer.hpp"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "shim/runtime/errors.hpp"
#include "shim/runtime/own_thread.hpp"
#include "shim/runtime/stats.hpp"

namespace mpisec::shim {

struct StatsWriter {
    std::thread thread;
    std::mutex mutex;
    std::condition_variable wake;
    bool stop = false;
};

namespace {

constexpr StatsWriter*& writer = process.stats_writer;

void run(StatsWriter& self) {
    pthread_setname_np(pthread_self(), "mpisec-stats");
    const std::chrono::duration<double> interval(state.settings.stats_interval);
    std::unique_lock lock(self.mutex);
    do write_running_stats();
    while (!self.wake.wait_for(lock, interval, [&] { return self.stop; }));
}

}  // namespace

void start_stats_writer() {
    if (stats_go_to_files()) prepare_stats_directory();
    if (writer || state.settings.stats_interval <= 0) return;
    if (!stats_go_to_files()) {
        if (state.world.rank == 0) say("MPISEC_STATS_INTERVAL has no effect without MPISEC_STATS=json:PATH");
        return;
    }
    writer = new StatsWriter;
    if (start_thread(writer->thread, [] { run(*writer); })) return;
    say("MPISEC_STATS_INTERVAL has no effect: there is no thread left for it");
    delete writer;
    writer = nullptr;
}

void stop_stats_writer() {
    if (!writer) return;
    {
        std::lock_guard lock(writer->mutex);
        writer->stop = true;
    }
    writer->wake.notify_one();
    writer->thread.join();
    delete writer;
    writer = nullptr;
}

}  // namespace mpisec::shim
