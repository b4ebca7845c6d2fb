#include "shim/runtime/state.hpp"

#include <utility>
#include <vector>

namespace mpisec::shim {

/// What is freed once the Guard is given back.
struct LateFrees {
    std::vector<std::function<void()>> waiting;
};

namespace {

void run_late_frees() {
    std::vector<std::function<void()>> due;
    {
        const Guard guard;
        due.swap(process.late_frees->waiting);
        process.has_late_frees = false;
    }
    for (const auto& free : due) free();
}

}  // namespace

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
    const bool frees = process.has_late_frees.load(std::memory_order_relaxed) && mutex().depth() == 1;
    mutex().unlock();
    if (frees) [[unlikely]]
        run_late_frees();
}

void free_without_guard(std::function<void()> free) {
    if (!state.thread_multiple) return free();
    const Guard guard;
    process.late_frees->waiting.push_back(std::move(free));
    process.has_late_frees = true;
}

}  // namespace mpisec::shim
