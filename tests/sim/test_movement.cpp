// Every algorithm that moves data gives every rank what it is to have and writes nothing beside it, on
// clusters of any shape; and nobody leaves a barrier before all have come.
#include "coll/bcast_large.hpp"
#include "movement.hpp"

namespace mpisec::test {
namespace {

class Moves : public EveryMovement {
  protected:
    void expect_moves(const std::vector<int>& node_sizes, const Sizes& sizes, Random& random) {
        const Scene scene = random_scene(GetParam().collective, node_sizes, sizes, random);
        if (!serves(scene)) return;
        Options options;
        options.seed = random();
        SCOPED_TRACE(scene.text + ", seed " + std::to_string(options.seed));
        const Outcome outcome = run(scene, options);
        ASSERT_EQ(outcome.report.error, "");
        for (std::size_t rank = 0; rank < outcome.right.size(); ++rank) {
            ASSERT_FALSE(outcome.report.failed[rank]) << "rank " << rank;
            ASSERT_TRUE(outcome.right[rank]) << "rank " << rank;
        }
    }
};

TEST_P(Moves, OnClustersOfEveryShape) {
    Random random(20210517);
    for (int nodes = 1; nodes <= 17; ++nodes) {
        if (sanitized && nodes > 5 && nodes != 8 && nodes != 17) continue;
        for (int per_node = 1; per_node <= 9; ++per_node) {
            if (sanitized && per_node > 4 && per_node != 9) continue;
            const std::vector<int> sizes(static_cast<std::size_t>(nodes), per_node);
            ASSERT_NO_FATAL_FAILURE(expect_moves(sizes, random_sizes(random), random));
        }
        for (int i = 0; i < (sanitized ? 2 : 5); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 9));
            ASSERT_NO_FATAL_FAILURE(expect_moves(sizes, random_sizes(random), random));
        }
    }
}

/// Small clusters many times: there are few of them, so most combinations of shape, placement, root, blocks
/// and model come up.
TEST_P(Moves, OnManySmallClusters) {
    Random random(4);
    for (int nodes = 1; nodes <= (sanitized ? 3 : 5); ++nodes)
        for (int i = 0; i < (sanitized ? 30 : 200); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 3));
            ASSERT_NO_FATAL_FAILURE(expect_moves(sizes, random_sizes(random), random));
        }
}

INSTANTIATE_TEST_SUITE_P(Movement, Moves, testing::ValuesIn(all_movements()), movement_name);

/// Broadcasts of so much that it is cut into segments.
class MovesMuch : public Moves {};

TEST_P(MovesMuch, AroundTheLengthsOfSegments) {
    constexpr std::size_t segment = coll::bcast_segment(0),
                          largest = coll::bcast_segment(std::size_t{1} << 30);
    Random random(11);
    for (std::size_t bytes : {segment - 1, segment, segment + 1, 2 * segment, 7 * segment + 3})
        for (int i = 0; i < (sanitized ? 1 : 3); ++i) {
            std::vector<int> sizes;
            for (int node = pick(random, 1, 4); node > 0; --node) sizes.push_back(pick(random, 1, 3));
            ASSERT_NO_FATAL_FAILURE(expect_moves(sizes, {true, bytes}, random));
        }
    if (sanitized) return;
    ASSERT_NO_FATAL_FAILURE(expect_moves({1, 2, 1}, {true, 17 * largest + 1}, random));
}

INSTANTIATE_TEST_SUITE_P(Movement, MovesMuch, testing::ValuesIn(movements({Collective::bcast})),
                         movement_name);

}  // namespace
}  // namespace mpisec::test
