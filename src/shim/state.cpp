#include "shim/state.hpp"

namespace mpisec::shim {

State state;

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

std::recursive_mutex& Guard::mutex() {
    static std::recursive_mutex instance;
    return instance;
}

}  // namespace mpisec::shim
