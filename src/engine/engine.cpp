#include "engine/engine.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include "base/relax.hpp"
#include "base/signals_blocked.hpp"
#include "engine/limiter.hpp"
#include "engine/queue.hpp"

namespace mpisec::engine {
namespace {

using Clock = std::chrono::steady_clock;

// Waking a worker costs the thread that calls MPI 5 to 10 microseconds, on a virtual machine up to 100. The first worker stays awake while
// large messages come often; the others are for work that it cannot do alone.
constexpr std::chrono::nanoseconds spin_of_first = std::chrono::milliseconds(1),
                                   spin_of_others = std::chrono::microseconds(50);
// What a thread takes at once: a few microseconds of work, so that it finishes at about the same time as the others.
constexpr std::size_t most_taken = 16, bytes_taken = 32 * 1024;
constexpr std::uint64_t measured_every = 8;   // in takes: reading the clock costs as much as 500 bytes
constexpr std::size_t measured_bytes = 1024;  // and tells nothing of smaller ones

std::uint64_t nanoseconds_now() {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

/// After the last store the task belongs to its owner again, who may destroy it at once.
void run(SegmentTask& task, unsigned thread) {
    aead::KeySet& key = task.key->for_thread(thread);
    task.thread = thread;
    if (task.timed) [[unlikely]]
        task.began = nanoseconds_now();
    const bool good = task.direction == SegmentTask::Direction::seal
                          ? key.seal(task.to, task.from, task.n, task.nonce.data(), nullptr, 0)
                          : key.open(task.to, task.from, task.n, task.nonce.data(), nullptr, 0);
    if (task.timed) [[unlikely]]
        task.ended = nanoseconds_now();
    task.state.store(good ? SegmentTask::State::done : SegmentTask::State::failed, std::memory_order_release);
}

/// Where one worker sleeps. The thread that wakes it needs no lock, so that the thread that calls MPI never waits for a worker that is
/// about to sleep.
class Bed {
  public:
    void lie_down() { asleep_.store(1); }
    /// False when another thread got it up before.
    bool get_up() {
        std::uint32_t expected = 1;
        return asleep_.compare_exchange_strong(expected, 0);
    }
    void sleep() {
        while (asleep_.load() == 1) futex(FUTEX_WAIT_PRIVATE, 1);
    }
    void wake() { futex(FUTEX_WAKE_PRIVATE, 1); }

  private:
    void futex(int operation, std::uint32_t value) {
        syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&asleep_), operation, value, nullptr, nullptr, 0);
    }
    std::atomic<std::uint32_t> asleep_{0};
    static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
};

void bind_to(unsigned core) {
    // The mask has the size that the core's number needs. When the system refuses, the worker runs wherever it may.
    cpu_set_t* mask = CPU_ALLOC(core + 1);
    if (!mask) return;
    const std::size_t bytes = CPU_ALLOC_SIZE(core + 1);
    CPU_ZERO_S(bytes, mask);
    CPU_SET_S(core, bytes, mask);
    sched_setaffinity(0, bytes, mask);
    CPU_FREE(mask);
}

}  // namespace

// On a cache line of its own for each thread: other threads write the neighbouring ones.
struct MessageKey::Impl {
    struct alignas(64) Slot {
        Slot(const aead::Selection& selection, const std::uint8_t* key_bytes) : set(selection, key_bytes) {}
        aead::KeySet set;
    };
    std::vector<Slot> slots;
};

MessageKey::MessageKey(const aead::Selection& selection, const std::uint8_t* key_bytes, unsigned threads)
    : impl_(std::make_unique<Impl>()) {
    impl_->slots.reserve(threads);  // so that no key is left behind by a move
    for (unsigned thread = 0; thread < threads; ++thread) impl_->slots.emplace_back(selection, key_bytes);
}

MessageKey::~MessageKey() = default;

aead::KeySet& MessageKey::for_thread(unsigned thread) {
    return impl_->slots[thread].set;
}

struct Engine::Impl {
    explicit Impl(unsigned workers) : limiter(workers + 1), beds(workers), accounts(workers + 1) {}

    /// Runs some of the oldest tasks on `thread`; false when there was none.
    bool run_some(unsigned thread, std::size_t most);
    void run_all(unsigned thread, SegmentTask* const* tasks, std::size_t count);
    bool look_for_work(std::chrono::nanoseconds how_long);
    bool wait_for_work(unsigned thread);
    std::chrono::nanoseconds spin_of(unsigned thread) const {
        return !own_cores ? std::chrono::nanoseconds(0) : thread == 1 ? spin_of_first : spin_of_others;
    }
    bool wake_another();
    bool one_too_many() const {
        return awake.load(std::memory_order_relaxed) + 1 > limiter.limit() &&
               !stopping.load(std::memory_order_relaxed);
    }
    void work(unsigned thread);

    // Written only by its thread; on a cache line of its own.
    struct alignas(64) Account {
        std::atomic<std::uint64_t> takes{0}, tasks{0}, bytes{0}, measured_bytes{0}, measured_ns{0};
        static void add(std::atomic<std::uint64_t>& sum, std::uint64_t n) {
            sum.store(sum.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        }
    };

    TaskQueue queue;
    Limiter limiter;
    // Threads inside the crypto library; counted only where the limiter is of use.
    std::atomic<unsigned> running{0};
    std::atomic<unsigned> looking{0};  // workers that spin, and see the next task at once
    std::atomic<unsigned> coming{0};   // workers that were woken and have not looked yet
    std::atomic<unsigned> awake{0};    // workers that are awake, including those that are coming
    std::atomic<bool> stopping{false};
    std::vector<Bed> beds;   // by worker
    bool own_cores = false;  // one for each worker; else none spins: others need the core too
    std::vector<Account> accounts;
    std::vector<std::thread> threads;
    const pid_t process = getpid();
};

void Engine::Impl::run_all(unsigned thread, SegmentTask* const* tasks, std::size_t count) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += tasks[i]->n;
    Account& account = accounts[thread];
    const bool limits = threads.size() > 1;
    const unsigned active = limits ? running.fetch_add(1, std::memory_order_relaxed) + 1 : 1;
    const bool measured = bytes >= measured_bytes && account.takes % measured_every == 0;
    // Before the tasks are finished: from then on their owners may read the account.
    Account::add(account.takes, 1);
    Account::add(account.tasks, count);
    Account::add(account.bytes, bytes);
    const auto begin = measured ? Clock::now() : Clock::time_point();
    for (std::size_t i = 0; i < count; ++i) run(*tasks[i], thread);
    if (measured) {
        const auto ns = static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
        Account::add(account.measured_bytes, bytes);
        Account::add(account.measured_ns, ns);
        if (limits) limiter.record(active, bytes, ns);
    }
    if (limits) running.fetch_sub(1, std::memory_order_relaxed);
}

bool Engine::Impl::run_some(unsigned thread, std::size_t most) {
    SegmentTask* tasks[most_taken];
    const std::size_t count = queue.take(tasks, std::min(most, most_taken), bytes_taken);
    for (std::size_t i = 0; i < count; ++i)
        tasks[i]->state.store(SegmentTask::State::running, std::memory_order_relaxed);
    if (count > 0) run_all(thread, tasks, count);
    return count > 0;
}

/// Always wakes the first sleeping worker in their order: so the same few workers do the work, and their cores and caches stay warm. True
/// when one is on its way.
bool Engine::Impl::wake_another() {
    const std::size_t waiting = queue.size(), see_it_at_once = looking.load();
    if (waiting <= see_it_at_once) return false;
    if (waiting <= see_it_at_once + coming.load()) return true;
    if (awake.load() + 1 >= limiter.limit()) return false;
    for (Bed& bed : beds)
        if (bed.get_up()) {
            coming.fetch_add(1);
            awake.fetch_add(1);
            bed.wake();
            return true;
        }
    return false;
}

bool Engine::Impl::look_for_work(std::chrono::nanoseconds how_long) {
    const auto until = Clock::now() + how_long;
    looking.fetch_add(1);
    bool found = false;
    do {
        for (int i = 0; i < 32 && !found; ++i) {
            found = queue.size() > 0;
            relax();
        }
    } while (!found && !stopping.load(std::memory_order_relaxed) && Clock::now() < until && !one_too_many());
    looking.fetch_sub(1);
    return found && !one_too_many();
}

/// False when the engine stops and nothing is queued. That no task is left behind while all workers sleep rests on the order of
/// sequentially consistent operations: submit() queues and then reads who is awake; a worker lies down, is no longer counted as awake, and
/// then reads the queue.
bool Engine::Impl::wait_for_work(unsigned thread) {
    if (look_for_work(spin_of(thread))) return true;
    Bed& bed = beds[thread - 1];
    bed.lie_down();
    awake.fetch_sub(1);
    // If other workers are awake and may do all of it, they do; the last of them comes by here before it sleeps.
    const bool needed = stopping.load() || (queue.size() > 0 && awake.load() + 1 < limiter.limit());
    if (needed && bed.get_up()) {
        awake.fetch_add(1);
    } else {
        bed.sleep();
        coming.fetch_sub(1);  // the thread that woke it has counted it
    }
    return queue.size() > 0 || !stopping.load();
}

void Engine::Impl::work(unsigned thread) {
    do {
        // A fair share of what waits, so that small tasks that arrive together are done together.
        while (!one_too_many() && run_some(thread, 1 + queue.size() / accounts.size())) {
        }
    } while (wait_for_work(thread));
}

Engine::Engine(unsigned workers, std::vector<unsigned> cores) : impl_(std::make_unique<Impl>(workers)) {
    SignalsBlocked signals;
    impl_->own_cores = cores.size() >= workers;
    impl_->threads.reserve(workers);
    for (unsigned thread = 1; thread <= workers; ++thread) {
        auto body = [impl = impl_.get(), thread,
                     core = cores.empty() ? -1 : int(cores[(thread - 1) % cores.size()])] {
            pthread_setname_np(pthread_self(), ("mpisec-" + std::to_string(thread)).c_str());
            if (core >= 0) bind_to(static_cast<unsigned>(core));
            impl->work(thread);
        };
        impl_->awake.fetch_add(1);
        try {
            impl_->threads.emplace_back(body);
        } catch (const std::system_error&) {  // a limit on threads: those that exist do the work
            impl_->awake.fetch_sub(1);
            break;
        }
    }
}

Engine::~Engine() {
    // In a forked child the workers do not exist: nobody would end them.
    if (impl_->process != getpid()) {
        (void)impl_.release();
        return;
    }
    impl_->stopping = true;
    for (Bed& bed : impl_->beds)
        if (bed.get_up()) {
            impl_->coming.fetch_add(1);
            impl_->awake.fetch_add(1);
            bed.wake();
        }
    for (std::thread& thread : impl_->threads) thread.join();
}

unsigned Engine::workers() const {
    return static_cast<unsigned>(impl_->threads.size());
}

void Engine::submit(SegmentTask& task) {
    SegmentTask* one = &task;
    if (impl_->threads.empty()) return impl_->run_all(0, &one, 1);
    task.state.store(SegmentTask::State::queued, std::memory_order_relaxed);
    if (!impl_->queue.push(one, task.n)) return impl_->run_all(0, &one, 1);
    if (impl_->awake.load() == 0) impl_->wake_another();
}

bool Engine::wake_another() {
    return impl_->wake_another();
}

bool Engine::help() {
    if (impl_->queue.size() > 1) impl_->wake_another();
    return impl_->run_some(0, 1);
}

std::size_t Engine::waiting() const {
    return impl_->queue.size();
}

ThreadWork Engine::work_of(unsigned thread) const {
    const Impl::Account& account = impl_->accounts[thread];
    ThreadWork work;
    work.tasks = account.tasks.load(std::memory_order_relaxed);
    work.bytes = account.bytes.load(std::memory_order_relaxed);
    const auto measured = static_cast<double>(account.measured_bytes.load(std::memory_order_relaxed));
    if (measured > 0)
        work.seconds = static_cast<double>(account.measured_ns.load(std::memory_order_relaxed)) * 1e-9 *
                       static_cast<double>(work.bytes) / measured;
    return work;
}

unsigned Engine::useful_threads() const {
    return impl_->limiter.limit();
}

}  // namespace mpisec::engine
