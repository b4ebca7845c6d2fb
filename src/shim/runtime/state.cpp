#include "shim/runtime/state.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "shim/runtime/threads.hpp"

namespace mpisec::shim {

/// What is freed once the thread that has put it off gives the Guard back.
struct LateFrees {
    struct Late {
        const char* thread;  ///< its mark
        std::function<void()> free;
    };
    std::vector<Late> waiting;

    std::vector<Late> take_own() {
        const auto first = std::stable_partition(
            waiting.begin(), waiting.end(), [](const Late& late) { return late.thread != &thread_mark; });
        std::vector<Late> own(std::make_move_iterator(first), std::make_move_iterator(waiting.end()));
        waiting.erase(first, waiting.end());
        process.has_late_frees = !waiting.empty();
        return own;
    }
};

const config::Settings& settings() {
    return state.settings;
}

engine::Engine& engine_of_process() {
    if (!state.engine) {
        const World& world = state.world;
        engine::Placement placement =
            engine::place_workers(state.settings.workers, static_cast<unsigned>(world.ranks_on_node),
                                  static_cast<unsigned>(world.rank_on_node));
        state.engine = std::make_unique<engine::Engine>(placement.workers, placement.cores);
    }
    return *state.engine;
}

RecursiveMutex& Guard::mutex() {
    return process.guard;
}

void Guard::leave() {
    std::vector<LateFrees::Late> due;
    if (process.has_late_frees.load(std::memory_order_relaxed) && mutex().depth() == 1) [[unlikely]]
        due = process.late_frees->take_own();
    mutex().unlock();
    for (const LateFrees::Late& late : due) late.free();
}

void free_without_guard(std::function<void()> free) {
    if (!state.thread_multiple) return free();
    const Guard guard;
    process.late_frees->waiting.push_back({&thread_mark, std::move(free)});
    process.has_late_frees = true;
}

}  // namespace mpisec::shim
