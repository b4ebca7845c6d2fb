#include "engine/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace mpisec::engine {
namespace {

constexpr auto spin_time = std::chrono::microseconds(20);

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

std::uint64_t clock_now() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// After the last store the task belongs to its owner again: it may be gone at once.
void run(SegmentTask& task, unsigned thread) {
    aead::KeySet& key = task.key->for_thread(thread);
    task.thread = thread;
    if (task.timed) [[unlikely]]
        task.began = clock_now();
    const bool good = task.direction == SegmentTask::Direction::seal
                          ? key.seal(task.to, task.from, task.n, task.nonce.data(), nullptr, 0)
                          : key.open(task.to, task.from, task.n, task.nonce.data(), nullptr, 0);
    if (task.timed) [[unlikely]]
        task.ended = clock_now();
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
    SegmentTask* take();
    bool wait_for_work();
    void work(unsigned thread);

    std::mutex mutex;
    std::condition_variable wake;
    std::deque<SegmentTask*> queue;      // under mutex
    unsigned sleeping = 0;               // under mutex
    std::atomic<bool> stopping{false};   // written under mutex
    std::atomic<std::size_t> queued{0};  // queue.size(), to look at without the mutex; written under it
    std::vector<std::thread> threads;
    const pid_t process = getpid();
};

SegmentTask* Engine::Impl::take() {
    if (queued.load(std::memory_order_relaxed) == 0) return nullptr;
    std::lock_guard lock(mutex);
    if (queue.empty()) return nullptr;
    SegmentTask* task = queue.front();
    queue.pop_front();
    queued.store(queue.size(), std::memory_order_relaxed);
    task->state.store(SegmentTask::State::running, std::memory_order_relaxed);
    return task;
}

/// False when the engine stops and nothing is queued.
bool Engine::Impl::wait_for_work() {
    const auto until = std::chrono::steady_clock::now() + spin_time;
    do {
        for (int i = 0; i < 32; ++i) {
            if (queued.load(std::memory_order_relaxed) > 0) return true;
            relax();
        }
    } while (!stopping.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < until);

    std::unique_lock lock(mutex);
    ++sleeping;
    wake.wait(lock, [&] { return !queue.empty() || stopping; });
    --sleeping;
    return !queue.empty();
}

void Engine::Impl::work(unsigned thread) {
    do {
        while (SegmentTask* task = take()) run(*task, thread);
    } while (wait_for_work());
}

Engine::Engine(unsigned workers, std::vector<unsigned> cores) : impl_(std::make_unique<Impl>()) {
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
    if (impl_->threads.empty()) return run(task, 0);
    bool somebody_sleeps;
    {
        std::lock_guard lock(impl_->mutex);
        task.state.store(SegmentTask::State::queued, std::memory_order_relaxed);
        impl_->queue.push_back(&task);
        impl_->queued.store(impl_->queue.size(), std::memory_order_relaxed);
        somebody_sleeps = impl_->sleeping > 0;
    }
    if (somebody_sleeps) impl_->wake.notify_one();
}

bool Engine::help() {
    SegmentTask* task = impl_->take();
    if (task) run(*task, 0);
    return task != nullptr;
}

}  // namespace mpisec::engine
