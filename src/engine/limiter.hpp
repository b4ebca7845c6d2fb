// How many threads are worth their cores: additional threads may share one core's units (hyper-threads), the memory's bandwidth, or a core
// that another process uses. Measured while they work, since all three change.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpisec::engine {

class Limiter {
  public:
    static constexpr unsigned max_threads = 256;
    /// Measured pieces of work after which the limit is set anew.
    static constexpr std::uint64_t epoch = 512;
    /// After this many epochs all threads may work again, to see whether they help by now.
    static constexpr unsigned trial = 16;
    /// A number of threads counts as being as good as a larger one unless the larger one is faster by this factor.
    static constexpr double worth_it = 1.05;

    /// `threads` could work at once. Two of them always may: when one seals while another sends, that helps even where both together seal
    /// no faster than one.
    explicit Limiter(unsigned threads);

    /// `bytes` took `ns` on one thread while `active` threads worked. Any thread.
    void record(unsigned active, std::uint64_t bytes, std::uint64_t ns);
    /// Threads that may work at once.
    unsigned limit() const { return limit_.load(std::memory_order_relaxed); }

  private:
    struct alignas(64) Level {
        std::atomic<std::uint64_t> pieces{0}, bytes{0}, ns{0};
    };
    void decide(std::uint64_t number);  // of the epoch

    const unsigned threads_;
    std::atomic<unsigned> limit_;
    std::atomic<std::uint64_t> recorded_{0};
    std::vector<Level> levels_;  // by the number of active threads
};

}  // namespace mpisec::engine
