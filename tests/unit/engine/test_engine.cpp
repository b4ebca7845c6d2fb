// The engine with 0 to 4 workers: every task is done once and right, nothing burns while idle, nothing stays
// behind.
#include "engine/engine.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "wire/stream.hpp"

namespace mpisec::engine {
namespace {

using namespace std::chrono_literals;
using State = SegmentTask::State;
constexpr std::uint64_t random_seed = 20261121;
constexpr std::uint8_t key_bytes[aead::max_key_bytes] = {1, 2, 3};

void forget_nonces() {
#ifdef MPISEC_NONCE_LEDGER
    aead::forget_nonces();
#endif
}

aead::Selection openssl() {
    auto library = aead::load("openssl");
    EXPECT_TRUE(library) << (library ? "" : library.error().message);
    aead::Selection selection;
    selection.library.fill(library ? *library : nullptr);
    return selection;
}

/// One segment with the memory that its task needs.
struct Segment {
    Segment(MessageKey& key, std::uint64_t index, std::size_t n)
        : plain(n), sealed(n + aead::tag_bytes), opened(n, 0xEE) {
        for (std::size_t i = 0; i < n; ++i) plain[i] = static_cast<std::uint8_t>(index * 31 + i);
        seal.key = open.key = &key;
        seal.n = open.n = n;
        seal.nonce = open.nonce = wire::segment_nonce(index, false);
        seal.from = plain.data();
        seal.to = sealed.data();
        open.direction = SegmentTask::Direction::open;
        open.from = sealed.data();
        open.to = opened.data();
    }

    std::vector<std::uint8_t> plain, sealed, opened;
    SegmentTask seal, open;
};
using Segments = std::vector<std::unique_ptr<Segment>>;

Segments make_segments(MessageKey& key, std::size_t count, std::size_t max_bytes) {
    std::mt19937_64 random(random_seed);
    Segments segments;
    for (std::size_t i = 0; i < count; ++i)
        segments.push_back(std::make_unique<Segment>(key, i, random() % (max_bytes + 1)));
    return segments;
}

void wait_for(const SegmentTask& task) {
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (!task.finished()) {
        ASSERT_LT(std::chrono::steady_clock::now(), limit) << "a task was never finished";
        std::this_thread::yield();
    }
}

class EngineWith : public testing::TestWithParam<unsigned> {
  protected:
    Engine engine{GetParam(), {}};
    MessageKey key{openssl(), key_bytes, GetParam() + 1};
};

TEST_P(EngineWith, SealsAndOpensEverySegment) {
    ASSERT_EQ(engine.workers(), GetParam());
    Segments segments = make_segments(key, 300, 20000);
    for (auto& segment : segments) engine.submit(segment->seal);
    for (auto& segment : segments) wait_for(segment->seal);
    for (auto& segment : segments) {
        ASSERT_EQ(segment->seal.state, State::done);
        engine.submit(segment->open);
    }
    for (auto& segment : segments) {
        wait_for(segment->open);
        ASSERT_EQ(segment->open.state, State::done);
        ASSERT_EQ(segment->opened, segment->plain);
    }
}

TEST_P(EngineWith, TellsWhatATaskTookWhereThatIsWanted) {
    Segments segments = make_segments(key, 20, 20000);
    for (std::size_t i = 0; i < segments.size(); ++i) {
        segments[i]->seal.timed = i % 2 == 0;
        engine.submit(segments[i]->seal);
    }
    for (std::size_t i = 0; i < segments.size(); ++i) {
        wait_for(segments[i]->seal);
        EXPECT_EQ(segments[i]->seal.began > 0, i % 2 == 0) << i;
        EXPECT_EQ(segments[i]->seal.ended > segments[i]->seal.began, i % 2 == 0) << i;
    }
}

TEST_P(EngineWith, ChangedSegmentFailsAloneAndReleasesNothing) {
    Segments segments = make_segments(key, 40, 5000);
    for (auto& segment : segments) engine.submit(segment->seal);
    for (auto& segment : segments) wait_for(segment->seal);
    for (std::size_t i = 0; i < segments.size(); i += 3) segments[i]->sealed.back() ^= 1;
    for (auto& segment : segments) engine.submit(segment->open);
    for (std::size_t i = 0; i < segments.size(); ++i) {
        wait_for(segments[i]->open);
        const bool changed = i % 3 == 0;
        EXPECT_EQ(segments[i]->open.state, changed ? State::failed : State::done) << i;
        EXPECT_EQ(segments[i]->opened,
                  changed ? std::vector<std::uint8_t>(segments[i]->plain.size()) : segments[i]->plain)
            << i;
    }
}

TEST_P(EngineWith, TheSubmitterCanHelp) {
    Segments segments = make_segments(key, 200, 20000);
    std::mt19937_64 random(random_seed);
    std::size_t submitted = 0, helped = 0;
    while (submitted < segments.size()) {
        const std::size_t burst = 1 + random() % 12;
        for (std::size_t i = 0; i < burst && submitted < segments.size(); ++i)
            engine.submit(segments[submitted++]->seal);
        while (random() % 3 && engine.help()) ++helped;
    }
    while (engine.help()) ++helped;
    for (auto& segment : segments) {
        wait_for(segment->seal);
        ASSERT_EQ(segment->seal.state, State::done);
    }
    EXPECT_FALSE(engine.help()) << "nothing is queued any more";
    if (GetParam() == 0) {
        EXPECT_EQ(helped, 0u) << "without workers submit() does the work";
    }
}

TEST_P(EngineWith, ResultsDoNotDependOnWhoDidTheWork) {
    Segments segments = make_segments(key, 50, 3000);
    for (auto& segment : segments) engine.submit(segment->seal);
    for (auto& segment : segments) wait_for(segment->seal);
    forget_nonces();  // the same again, on purpose
    MessageKey own(openssl(), key_bytes, 1);
    for (auto& segment : segments) {
        wait_for(segment->seal);
        std::vector<std::uint8_t> expected(segment->sealed.size());
        ASSERT_TRUE(own.for_thread(0).seal(expected.data(), segment->plain.data(), segment->plain.size(),
                                           segment->seal.nonce.data(), nullptr, 0));
        ASSERT_EQ(segment->sealed, expected);
    }
}

TEST_P(EngineWith, AKeyMayGoAsSoonAsItsTasksAreFinished) {
    for (int message = 0; message < 200; ++message) {
        const std::uint8_t its_key[aead::max_key_bytes] = {static_cast<std::uint8_t>(message)};
        auto own = std::make_unique<MessageKey>(openssl(), its_key, GetParam() + 1);
        Segments segments = make_segments(*own, 4, 2000);
        for (auto& segment : segments) engine.submit(segment->seal);
        for (auto& segment : segments) wait_for(segment->seal);
        own.reset();
        segments.clear();
    }
}

TEST_P(EngineWith, DestructionFinishesWhatIsQueued) {
    Segments segments = make_segments(key, 100, 50000);
    {
        Engine other(GetParam(), {});
        for (auto& segment : segments) other.submit(segment->seal);
    }
    for (auto& segment : segments) EXPECT_EQ(segment->seal.state, State::done);
}

/// As many workers as have a core, so that they spin before they sleep: all on the caller's.
std::vector<unsigned> cores_of_their_own(unsigned workers) {
    return std::vector<unsigned>(workers, static_cast<unsigned>(sched_getcpu()));
}

TEST_P(EngineWith, SleepsWhenIdle) {
    Engine spinning(GetParam(), cores_of_their_own(GetParam()));
    std::this_thread::sleep_for(20ms);  // beyond the spinning
    auto cpu_seconds = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    };
    const double before = cpu_seconds();
    std::this_thread::sleep_for(300ms);
    EXPECT_LT(cpu_seconds() - before, 0.1);

    Segment segment(key, 0, 100);  // and wakes up again
    spinning.submit(segment.seal);
    wait_for(segment.seal);
    EXPECT_EQ(segment.seal.state, State::done);
}

/// One after the other, whatever the pauses between them: the same worker wakes, or another where a busy machine has kept it from going to
/// sleep.
TEST_P(EngineWith, OneWorksWhereOneKeepsUp) {
    Engine spinning(GetParam(), cores_of_their_own(GetParam()));
    std::this_thread::sleep_for(20ms);  // all of them sleep
    const unsigned first = 1 % (GetParam() + 1);
    const std::uint64_t before = spinning.work_of(first).tasks;
    for (std::uint64_t i = 0; i < 40; ++i) {
        Segment segment(key, 100 + i, 1000);
        spinning.submit(segment.seal);
        wait_for(segment.seal);
        if (i % 2) std::this_thread::sleep_for(2ms);
    }
    EXPECT_GE(spinning.work_of(first).tasks - before, 35u);
}

TEST_P(EngineWith, KnowsWhatEachThreadDid) {
    Segments segments = make_segments(key, 400, 9000);
    std::uint64_t bytes = 0;
    for (auto& segment : segments) bytes += segment->seal.n, engine.submit(segment->seal);
    for (auto& segment : segments)
        while (!segment->seal.finished()) engine.help();
    std::uint64_t tasks = 0, sealed = 0;
    for (unsigned thread = 0; thread <= GetParam(); ++thread) {
        tasks += engine.work_of(thread).tasks;
        sealed += engine.work_of(thread).bytes;
    }
    EXPECT_EQ(tasks, segments.size());
    EXPECT_EQ(sealed, bytes);
}

/// More than wait in the queue at once, from several messages.
TEST_P(EngineWith, ManyMessagesAtOnce) {
    std::vector<std::unique_ptr<MessageKey>> keys;
    std::vector<Segments> messages;
    for (std::uint8_t message = 0; message < 8; ++message) {
        const std::uint8_t its_key[aead::max_key_bytes] = {message, 77};
        keys.push_back(std::make_unique<MessageKey>(openssl(), its_key, GetParam() + 1));
        messages.push_back(make_segments(*keys.back(), 200, 3000));
    }
    for (std::size_t i = 0; i < 200; ++i)
        for (Segments& message : messages) engine.submit(message[i]->seal);
    for (Segments& message : messages)
        for (auto& segment : message) {
            while (!segment->seal.finished()) engine.help();
            ASSERT_EQ(segment->seal.state, State::done);
            engine.submit(segment->open);
        }
    for (Segments& message : messages)
        for (auto& segment : message) {
            wait_for(segment->open);
            ASSERT_EQ(segment->opened, segment->plain);
        }
}

/// A task that comes just when the last worker goes to sleep is not forgotten. Without cores of their own they look for
/// work for less than two microseconds.
TEST_P(EngineWith, NoTaskIsLeftBehindBySleepers) {
    std::mt19937 random(random_seed);
    for (std::uint64_t i = 0; i < 20000; ++i) {
        Segment segment(key, 5000 + i, 64);
        engine.submit(segment.seal);
        wait_for(segment.seal);
        const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(random() % 3000);
        while (std::chrono::steady_clock::now() < until) {
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Workers, EngineWith, testing::Range(0u, 5u));

/// Names and signal masks of this process's worker threads, from /proc.
struct WorkerThread {
    std::string name, blocked_signals;
};
std::vector<WorkerThread> worker_threads() {
    std::vector<WorkerThread> found;
    DIR* tasks = opendir("/proc/self/task");
    while (dirent* entry = readdir(tasks)) {
        std::ifstream status(std::string("/proc/self/task/") + entry->d_name + "/status");
        WorkerThread thread;
        for (std::string word; status >> word;) {
            if (word == "Name:") status >> thread.name;
            if (word == "SigBlk:") status >> thread.blocked_signals;
        }
        if (thread.name.starts_with("mpisec-")) found.push_back(thread);
    }
    closedir(tasks);
    return found;
}

/// A thread names itself when it first runs, which may be after its engine was made.
std::vector<WorkerThread> worker_threads_once_there_are(std::size_t count) {
    for (int i = 0; i < 1000 && worker_threads().size() < count; ++i) std::this_thread::sleep_for(1ms);
    return worker_threads();
}

/// A joined thread is in /proc for a moment longer: the kernel tells its joiner first.
bool workers_are_gone() {
    for (int i = 0; i < 1000 && !worker_threads().empty(); ++i) std::this_thread::sleep_for(1ms);
    return worker_threads().empty();
}

TEST(Engine, WorkersAreNamedBlockSignalsAndAreGoneAfterwards) {
    {
        Engine engine(3, {});
        const auto threads = worker_threads_once_there_are(3);
        ASSERT_EQ(threads.size(), 3u);
        for (const WorkerThread& thread : threads) {
            const auto blocked = std::stoull(thread.blocked_signals, nullptr, 16);
            for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGPROF, SIGCHLD, SIGHUP})
                EXPECT_TRUE(blocked >> (signal - 1) & 1) << thread.name << " takes signal " << signal;
        }
    }
    EXPECT_TRUE(workers_are_gone());  // M14

    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    EXPECT_FALSE(sigismember(&mine, SIGTERM)) << "the caller's own mask was left changed";
}

TEST(Engine, WorkersRunOnTheGivenCores) {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    unsigned last = 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &mine)) last = cpu;
    Engine engine(2, {last});
    ASSERT_EQ(worker_threads_once_there_are(2).size(), 2u);
    DIR* tasks = opendir("/proc/self/task");
    std::vector<std::string> lists;
    for (int i = 0; i < 1000; ++i) {  // bound just after it is named
        lists.clear();
        rewinddir(tasks);
        while (dirent* entry = readdir(tasks)) {
            std::ifstream status(std::string("/proc/self/task/") + entry->d_name + "/status");
            std::string word, name, list;
            while (status >> word) {
                if (word == "Name:") status >> name;
                if (word == "Cpus_allowed_list:") status >> list;
            }
            if (name.starts_with("mpisec-")) lists.push_back(list);
        }
        if (lists == std::vector<std::string>(2, std::to_string(last))) break;
        std::this_thread::sleep_for(1ms);
    }
    closedir(tasks);
    EXPECT_EQ(lists, std::vector<std::string>(2, std::to_string(last)));
}

TEST(Engine, ACoreThatIsNotThereIsNoError) {
    Engine engine(1, {100000});
    MessageKey key(openssl(), key_bytes, 2);
    Segment segment(key, 0, 100);
    engine.submit(segment.seal);
    wait_for(segment.seal);
    EXPECT_EQ(segment.seal.state, State::done);
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow a fork of several threads
TEST(Engine, AForkedChildCanExit) {
    auto engine = std::make_unique<Engine>(2, std::vector<unsigned>{});
    // The workers sleep: a condition variable with sleepers cannot be destroyed.
    std::this_thread::sleep_for(20ms);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(20);  // what hangs dies by the signal
        engine.reset();
        _exit(7);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "status " << status;
}
#endif

}  // namespace
}  // namespace mpisec::engine
