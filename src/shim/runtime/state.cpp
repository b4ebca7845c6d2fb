#include "shim/runtime/state.hpp"

namespace mpisec::shim {

NeverDestroyedState never_destroyed_state;

namespace {

/// A program that leaves without MPI_Finalize: workers must not go on while libraries are being taken down.
struct JoinWorkers {
    ~JoinWorkers() { state.engine.reset(); }  // in a forked child, which has none, it does nothing
} join_workers;

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

std::recursive_mutex& Guard::mutex() {
    static std::recursive_mutex instance;
    return instance;
}

}  // namespace mpisec::shim
