// Every algorithm that moves data gives every rank what it is to have and writes nothing beside it, on
// clusters of any shape; and nobody leaves a barrier before all have come.
#include <deque>

#include "coll/bcast/bcast_large.hpp"
#include "coll/patterns/numbers.hpp"
#include "movement.hpp"

namespace mpisec::test {
namespace {

class Moves : public EveryMovement {
  protected:
    void expect_moves(const std::vector<int>& node_sizes, const Sizes& sizes, Random& random) {
        expect_moves(node_sizes, sizes, random, any_options(random));
    }
    void expect_moves(const std::vector<int>& node_sizes, const Sizes& sizes, Random& random,
                      const Options& options) {
        const Scene scene = random_scene(GetParam().collective, node_sizes, sizes, random);
        if (!serves(scene)) return;
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
        for (int i = 0; i < (sanitized ? 12 : 200); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 3));
            ASSERT_NO_FATAL_FAILURE(expect_moves(sizes, random_sizes(random), random));
        }
}

/// What `mpisec sim` tells is what a run with data takes.
TEST_P(Moves, NoBytesInTheTimeOfAll) {
    Random random(13);
    for (int i = 0; i < 20; ++i) {
        const Scene scene = random_scene(GetParam().collective, {2, 3, 1, 4}, random_sizes(random), random);
        if (!serves(scene)) continue;
        Options options;
        const Report with = run(scene, options).report;
        options.data = false;
        const Report without = run(scene, options).report;
        ASSERT_EQ(without.error, "");
        ASSERT_EQ(without.seconds, with.seconds);
        ASSERT_EQ(without.messages_between, with.messages_between);
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
        for (int i = 0; i < (sanitized ? 1 : 2); ++i) {
            std::vector<int> sizes;
            for (int node = pick(random, 1, 4); node > 0; --node) sizes.push_back(pick(random, 1, 3));
            ASSERT_NO_FATAL_FAILURE(expect_moves(sizes, {true, bytes}, random));
        }
    if (sanitized) return;
    for (const std::vector<int>& nodes : {std::vector{1, 2, 1}, {2, 3}, {3, 1}})
        ASSERT_NO_FATAL_FAILURE(expect_moves(nodes, {true, 17 * largest + 1}, random));
}

TEST_P(MovesMuch, InFewPieces) {
    constexpr std::size_t least = coll::bcast_segment(0, 2),
                          largest = coll::bcast_segment(std::size_t{1} << 30, 2);
    Random random(13);
    for (int nodes : {2, 3, 5})
        for (std::size_t bytes : {least - 1, 2 * least + 1, 9 * largest + 1}) {
            if (sanitized && bytes > largest) continue;
            Options options = any_options(random);
            options.few_parts = true;
            const std::vector<int> one_each(static_cast<std::size_t>(nodes), 1);
            ASSERT_NO_FATAL_FAILURE(expect_moves(one_each, {true, bytes}, random, options));
        }
}

INSTANTIATE_TEST_SUITE_P(Movement, MovesMuch, testing::ValuesIn(movements({Collective::bcast})),
                         movement_name);

/// Gathers and scatters of so much that it goes through shared memory in batches.
class MovesBatches : public Moves {};

TEST_P(MovesBatches, OfLargeBlocks) {
    Random random(12);
    for (const std::vector<int>& nodes : {std::vector{3, 5, 4}, {2, 4, 3}}) {
        if (sanitized && nodes.front() == 2) continue;
        ASSERT_NO_FATAL_FAILURE(expect_moves(nodes, {true, 1100 << 10}, random));
    }
}

std::vector<Movement> in_batches() {
    return {{Collective::gather, *coll::find_algorithm(Collective::gather, "shared-open")},
            {Collective::scatter, *coll::find_algorithm(Collective::scatter, "shared-seal")}};
}
INSTANTIATE_TEST_SUITE_P(Movement, MovesBatches, testing::ValuesIn(in_batches()), movement_name);

#ifndef MPISEC_TINY_CHUNKS
/// Long blocks in segments, of which few are under way.
class MovesSegments : public Moves {};

TEST_P(MovesSegments, OfLongerBlocksTakesNoMoreMemory) {
    auto memory_of = [&](std::size_t bytes) {
        Random random(3);
        const Scene scene = random_scene(GetParam().collective, {1, 1, 1}, {true, bytes}, random);
        Options options;
        options.data = false;
        const Report report = run(scene, options).report;
        EXPECT_EQ(report.error, "");
        return *std::ranges::max_element(report.room_bytes);
    };
    EXPECT_LE(memory_of(12 << 20), memory_of(4 << 20) * 3 / 2);  // how much is under way varies a little
}

std::vector<Movement> in_segments() {
    return {{Collective::gather, *coll::find_algorithm(Collective::gather, "linear")},
            {Collective::scatter, *coll::find_algorithm(Collective::scatter, "linear")},
            {Collective::alltoall, *coll::find_algorithm(Collective::alltoall, "pipeline")}};
}
INSTANTIATE_TEST_SUITE_P(Movement, MovesSegments, testing::ValuesIn(in_segments()), movement_name);
#endif

/// A rank whose node has no memory to share: every room is its own.
class Hermit final : public fabric::Fabric {
  public:
    explicit Hermit(const Topology& topology) : Fabric(0, topology, false) {}
    void copy(fabric::PlaintextBuffer, fabric::Plaintext) override {}
    void combine(const fabric::Reduction&, fabric::PlaintextBuffer, fabric::Plaintext) override {}

  protected:
    unsigned start_send(int, std::span<std::uint8_t>, bool) override { return 0; }
    unsigned start_receive(int, std::span<std::uint8_t>, bool) override { return 0; }
    unsigned start_barrier() override { return 0; }
    bool finished(unsigned) override { return true; }
    void when_finished(unsigned, std::coroutine_handle<>) override {}
    void finish(unsigned) override {}
    void do_seal(std::span<std::uint8_t>, fabric::Plaintext, fabric::SealedBlock) override {}
    void misused(fabric::SealedBlock) override {}
    bool do_open(fabric::PlaintextBuffer, fabric::Plaintext, fabric::SealedBlock) override { return true; }
    std::span<std::uint8_t> room(std::size_t bytes) override {
        memory_.emplace_back(bytes, std::uint8_t{0xA5});
        return memory_.back();
    }
    std::span<std::uint8_t> shared_room(std::size_t bytes) override { return room(bytes); }

  private:
    std::deque<std::vector<std::uint8_t>> memory_;
};

TEST(Numbers, ThatDidNotComeAreNotBelieved) {
    const Topology topology({0, 0});
    Hermit fabric(topology);
    std::vector<std::size_t> all(3);
    bool complete = true;
    fabric::Task task = coll::share_numbers(fabric, {7}, 1, all, &complete);
    task.start();
    EXPECT_TRUE(task.done());
    EXPECT_FALSE(complete);
    EXPECT_TRUE(fabric.failed());
    EXPECT_EQ(all, (std::vector<std::size_t>{0, 7, 0}));
}

}  // namespace
}  // namespace mpisec::test
