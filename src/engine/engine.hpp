// Worker threads that seal and open segments of large messages (docs/protocol.md, "Large message").
//
// The thread that calls MPI submits tasks and watches the state of each; meanwhile the workers run them, oldest first, and may finish them
// in any order: the caller takes results in the order it needs. Workers never call MPI (M10). Without workers a task runs in submit().
//
// All messages of the process put their tasks into one lock-free queue (queue.hpp), from which every thread takes the oldest, small ones
// several at a time. Only as few threads work as are needed to keep up, because one worker often seals faster than MPI sends, and waking
// others takes the caller's time: submit() wakes one worker when all sleep, and a caller that has to wait wakes another. The first worker,
// when it has nothing to do, looks for work for a millisecond before it sleeps, the others for 50 microseconds. No more of them work than
// make sealing faster (limiter.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "aead/aead.hpp"
#include "wire/frame.hpp"

namespace mpisec::engine {

/// The key of one large message, set up once for each thread that uses it. Destroy it only when every task that names it is finished.
class MessageKey {
  public:
    /// `key_bytes`: as many bytes as the cipher's key has. `threads`: Engine::workers() + 1.
    MessageKey(const aead::Selection& selection, const std::uint8_t* key_bytes, unsigned threads);
    ~MessageKey();
    /// 0: the thread that calls MPI; 1…: workers. With MPI_THREAD_MULTIPLE several threads call MPI: a thread that calls submit(), help()
    /// or this with 0 must hold the lock that these threads share.
    aead::KeySet& for_thread(unsigned thread);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct SegmentTask {
    enum class Direction : std::uint8_t { seal, open };
    enum class State : std::uint8_t { idle, queued, running, done, failed };

    MessageKey* key = nullptr;
    Direction direction = Direction::seal;
    std::uint8_t* to = nullptr;          ///< seal: n + tag_bytes; open: n bytes, zeros when it failed (S2)
    const std::uint8_t* from = nullptr;  ///< seal: n bytes; open: n + tag_bytes
    std::size_t n = 0;                   ///< plaintext bytes
    wire::Nonce nonce{};
    bool timed = false;                  ///< whether `began` and `ended` are wanted
    unsigned thread = 0;                 ///< the thread that ran it: 0 the one that calls MPI, 1… workers
    std::uint64_t began = 0, ended = 0;  ///< nanoseconds of CLOCK_MONOTONIC
    std::atomic<State> state{State::idle};

    /// Once true, the worker is done with the task, its buffers and its key, and what it wrote is visible.
    bool finished() const {
        State now = state.load(std::memory_order_acquire);
        return now == State::done || now == State::failed;
    }
};

/// What one thread has done since the engine was made.
struct ThreadWork {
    std::uint64_t tasks = 0, bytes = 0;
    double seconds = 0;  ///< inside the crypto library; estimated from every eighth take
};

class Engine {
  public:
    /// `workers` threads on the given cores (operating-system indices, used cyclically; empty: wherever they may run). No worker spins
    /// where there are fewer cores than workers. There are fewer threads when the system grants no more. The threads block every signal, so
    /// that the program's handlers run on the program's threads, and are named mpisec-1, mpisec-2, …
    Engine(unsigned workers, std::vector<unsigned> cores);
    /// Finishes what is queued and joins the workers (M14). In a child made by fork(), which has no workers,
    /// it does nothing.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    unsigned workers() const;

    /// Queues `task`, which must stay where it is until finished(). Without workers, and when too many tasks wait, it is finished on
    /// return.
    void submit(SegmentTask& task);
    /// Wakes one more worker for what is queued. False when every queued task will be begun at once anyway, or when no worker may be woken.
    bool wake_another();
    /// For a caller that would otherwise wait because the workers do not keep up: runs the oldest queued task, and wakes another worker for
    /// those behind it. False when none was queued.
    bool help();
    /// Tasks that no thread has begun.
    std::size_t waiting() const;

    /// 0: the thread that calls MPI.
    ThreadWork work_of(unsigned thread) const;
    /// How many threads, the caller's among them, are worth their cores according to what was measured so far.
    unsigned useful_threads() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Where the workers of one rank go.
struct Placement {
    unsigned workers;
    std::vector<unsigned> cores;  ///< operating-system indices, one hardware thread of each core
};

/// Cores that this process may use and that no rank of this node needs, shared among the ranks that may use the same ones. There are none
/// when the ranks are bound to all of them. `setting` is MPISEC_WORKERS: -1 means all spare cores up to 4 per rank, 0 none (and costs
/// nothing), else that many workers, on the spare cores if there are any. Reads /sys: call it with the first large message, not at
/// start-up.
Placement place_workers(int setting, unsigned ranks_on_node, unsigned rank_on_node);

}  // namespace mpisec::engine
