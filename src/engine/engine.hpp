// Worker threads that seal and open segments of large messages (design.md sections 3 and 4).
//
// The thread that calls MPI submits tasks in the order of the segments and takes their results in that order; the
// workers run them in between. Workers never call MPI (M10). Without workers a task runs in submit().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "aead/aead.hpp"
#include "wire/frame.hpp"

namespace mpisec::engine {

/// The key of one large message, set up once per thread that uses it.
class MessageKey {
  public:
    MessageKey(const aead::Selection& selection, const std::uint8_t* key_bytes, unsigned threads);
    ~MessageKey();
    aead::KeySet& for_thread(unsigned thread);  ///< 0: the thread that calls MPI; 1…: workers

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct SegmentTask {
    enum class Direction : std::uint8_t { seal, open };
    enum class State : std::uint8_t { idle, queued, running, done, failed };

    MessageKey* key = nullptr;
    Direction direction = Direction::seal;
    std::uint8_t* to = nullptr;
    const std::uint8_t* from = nullptr;
    std::size_t n = 0;  ///< plaintext bytes
    wire::Nonce nonce{};
    std::atomic<State> state{State::idle};

    bool finished() const {
        State now = state.load(std::memory_order_acquire);
        return now == State::done || now == State::failed;
    }
};

class Engine {
  public:
    /// `workers` threads on the given cores (operating-system indices, cycled; empty: wherever they may run).
    Engine(unsigned workers, std::vector<unsigned> cores);
    ~Engine();  ///< joins the workers; queued tasks are finished first (M14)
    unsigned workers() const;

    /// Queues `task`, which must stay where it is until finished(). Without workers it is finished on return.
    void submit(SegmentTask& task);
    /// Lets the calling thread run one queued task; false when there was none. For a caller that would wait otherwise.
    bool help();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Cores that this process may use and that no rank of this node needs: allowed physical cores minus `ranks_on_node`, none when ranks are
/// bound to all of them. `setting` is MPISEC_WORKERS (-1: all spare ones up to 4).
struct Placement {
    unsigned workers;
    std::vector<unsigned> cores;
};
Placement place_workers(int setting, unsigned ranks_on_node, unsigned rank_on_node);

}  // namespace mpisec::engine
