#include "engine/limiter.hpp"

#include <algorithm>
#include <array>

namespace mpisec::engine {
namespace {

constexpr std::uint64_t enough_pieces = 16;  // with fewer, a level says nothing
constexpr unsigned least = 2;

}  // namespace

Limiter::Limiter(unsigned threads)
    : threads_(std::min(threads, max_threads)), limit_(threads_), levels_(threads_ + 1) {}

void Limiter::record(unsigned active, std::uint64_t bytes, std::uint64_t ns) {
    Level& level = levels_[std::clamp(active, 1u, threads_)];
    level.pieces.fetch_add(1, std::memory_order_relaxed);
    level.bytes.fetch_add(bytes, std::memory_order_relaxed);
    level.ns.fetch_add(ns, std::memory_order_relaxed);
    const std::uint64_t count = recorded_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (count % epoch == 0) decide(count / epoch);
}

void Limiter::decide(std::uint64_t number) {
    // The speed of all threads together, if each of `active` is as fast as those that were measured.
    std::array<double, max_threads + 1> speed{};
    double best = 0;
    for (unsigned active = 1; active <= threads_; ++active) {
        const Level& level = levels_[active];
        const auto ns = static_cast<double>(level.ns.load(std::memory_order_relaxed));
        if (level.pieces.load(std::memory_order_relaxed) < enough_pieces || ns == 0) continue;
        speed[active] = active * static_cast<double>(level.bytes.load(std::memory_order_relaxed)) / ns;
        best = std::max(best, speed[active]);
    }
    // Until the next trial nothing is known of more threads than may work now, nor of numbers of threads that never worked together.
    const unsigned now = limit_.load(std::memory_order_relaxed);
    unsigned limit = now;
    for (unsigned active = now; speed[now] > 0 && active >= 1; --active)
        if (speed[active] > 0 && speed[active] * worth_it >= best) limit = active;
    const bool try_all = number % trial == 0;
    limit_.store(try_all ? threads_ : std::max(limit, std::min(least, threads_)), std::memory_order_relaxed);
    // Old measurements count less and less; before a trial they are dropped.
    for (unsigned active = 1; active <= threads_; ++active) {
        Level& level = levels_[active];
        for (std::atomic<std::uint64_t>* sum : {&level.pieces, &level.bytes, &level.ns})
            sum->store(try_all ? 0 : sum->load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    }
}

}  // namespace mpisec::engine
