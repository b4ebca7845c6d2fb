#include "shim/runtime/state.hpp"

namespace mpisec::shim {

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

}  // namespace mpisec::shim
