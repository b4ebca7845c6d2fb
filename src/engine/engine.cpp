#include "engine/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "engine/limiter.hpp"
#include "engine/queue.hpp"

namespace mpisec::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto spin_time = std::chrono::microseconds(20);
// Taken at once: a few microseconds of work, so that whoever has them is done about when the others are.
constexpr std::size_t most_taken = 16, bytes_taken = 32 * 1024;
constexpr std::uint64_t measured_every = 8;   // takes: reading the clock costs as much as 500 bytes
constexpr std::size_t measured_bytes = 1024;  // and tells nothing of smaller ones

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

std::uint64_t nanoseconds_now() {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

/// After the last store the task belongs to its owner again: it may be gone at once.
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

/// Blocks every signal while it lives: threads made meanwhile inherit that.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

void bind_to(unsigned core) {
    // A mask of the size that the core's number needs. When the system refuses, the worker runs where it may.
    cpu_set_t* mask = CPU_ALLOC(core + 1);
    if (!mask) return;
    const std::size_t bytes = CPU_ALLOC_SIZE(core + 1);
    CPU_ZERO_S(bytes, mask);
    CPU_SET_S(core, bytes, mask);
    sched_setaffinity(0, bytes, mask);
    CPU_FREE(mask);
}

}  // namespace

// On a cache line of its own per thread: neighbours are written by others.
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
    explicit Impl(unsigned workers) : limiter(workers + 1), accounts(workers + 1) {}

    /// Runs some of the oldest tasks on `thread`; false when there was none.
    bool run_some(unsigned thread, std::size_t most);
    void run_all(unsigned thread, SegmentTask* const* tasks, std::size_t count);
    bool wait_for_work();
    bool one_too_many() const {
        return awake.load(std::memory_order_relaxed) + 1 > limiter.limit() &&
               !stopping.load(std::memory_order_relaxed);
    }
    void work(unsigned thread);

    // Written by its thread only; on a cache line of its own.
    struct alignas(64) Account {
        std::atomic<std::uint64_t> takes{0}, tasks{0}, bytes{0}, measured_bytes{0}, measured_ns{0};
        static void add(std::atomic<std::uint64_t>& sum, std::uint64_t n) {
            sum.store(sum.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        }
    };

    TaskQueue queue;
    Limiter limiter;
    std::atomic<unsigned> running{0};   // threads inside the crypto library; kept where the limiter is of use
    std::atomic<unsigned> looking{0};   // workers that spin, and see the next task at once
    std::atomic<unsigned> awake{0};     // workers; changed under mutex
    std::atomic<unsigned> sleeping{0};  // workers; changed under mutex
    std::mutex mutex;
    std::condition_variable wake;
    std::atomic<bool> stopping{false};  // written under mutex
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
    // Before the tasks are finished: their owners may read it then.
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

/// False when the engine stops and nothing is queued. That no task stays behind while all sleep rests on the order of
/// what is sequentially consistent: submit() queues and then reads who looks, is awake or sleeps; a worker changes
/// these and then reads the queue.
bool Engine::Impl::wait_for_work() {
    const auto until = Clock::now() + spin_time;
    looking.fetch_add(1);
    bool found = false;
    do {
        for (int i = 0; i < 32 && !found; ++i) {
            found = queue.size() > 0;
            relax();
        }
    } while (!found && !stopping.load(std::memory_order_relaxed) && Clock::now() < until && !one_too_many());
    looking.fetch_sub(1);
    if (found && !one_too_many()) return true;

    std::unique_lock lock(mutex);
    sleeping.fetch_add(1);
    awake.fetch_sub(1);
    // Where others are awake and may do it all, they do; the last of them comes by here before it sleeps.
    wake.wait(lock, [&] { return stopping || (queue.size() > 0 && awake.load() + 1 < limiter.limit()); });
    awake.fetch_add(1);
    sleeping.fetch_sub(1);
    return queue.size() > 0 || !stopping;
}

void Engine::Impl::work(unsigned thread) {
    awake.fetch_add(1);
    do {
        // A fair share of what waits, so that small tasks that come together are done together.
        while (!one_too_many() && run_some(thread, 1 + queue.size() / accounts.size())) {
        }
    } while (wait_for_work());
}

Engine::Engine(unsigned workers, std::vector<unsigned> cores) : impl_(std::make_unique<Impl>(workers)) {
    SignalsBlocked signals;
    impl_->threads.reserve(workers);
    for (unsigned thread = 1; thread <= workers; ++thread) {
        auto body = [impl = impl_.get(), thread,
                     core = cores.empty() ? -1 : int(cores[(thread - 1) % cores.size()])] {
            pthread_setname_np(pthread_self(), ("mpisec-" + std::to_string(thread)).c_str());
            if (core >= 0) bind_to(static_cast<unsigned>(core));
            impl->work(thread);
        };
        try {
            impl_->threads.emplace_back(body);
        } catch (const std::system_error&) {  // a limit on threads: those that we have do the work
            break;
        }
    }
}

Engine::~Engine() {
    // In a forked child the workers are missing, and mutex and condition variable are as these had left them.
    if (impl_->process != getpid()) {
        (void)impl_.release();
        return;
    }
    {
        std::lock_guard lock(impl_->mutex);
        impl_->stopping = true;
    }
    impl_->wake.notify_all();
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
    if (impl_->sleeping.load() == 0) return;
    if (impl_->queue.size() <= impl_->looking.load() || impl_->awake.load() + 1 >= impl_->limiter.limit())
        return;
    std::lock_guard lock(impl_->mutex);  // between a worker's last look at the queue and its sleep
    impl_->wake.notify_one();
}

bool Engine::help() {
    return impl_->run_some(0, 1);
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
