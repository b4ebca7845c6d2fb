// Whatever message between nodes is changed: nobody waits for ever, somebody notices, and who does not notice
// has the right bytes (S2, S8).
#include "coll/bcast/bcast_large.hpp"
#include "movement.hpp"

namespace mpisec::test {
namespace {

class Attacked : public EveryMovement {
  protected:
    void expect_noticed(const std::vector<int>& node_sizes, const Sizes& sizes, Random& random) {
        expect_noticed(node_sizes, sizes, random, any_options(random));
    }
    void expect_noticed(const std::vector<int>& node_sizes, const Sizes& sizes, Random& random,
                        Options options) {
        const Scene scene = random_scene(GetParam().collective, node_sizes, sizes, random);
        if (!serves(scene)) return;
        const std::uint64_t messages = run(scene, options).report.messages_between;
        changed_ += messages;
        for (options.tamper = 1; options.tamper <= messages; ++options.tamper) {
            SCOPED_TRACE(scene.text + ", seed " + std::to_string(options.seed) + ", changed message " +
                         std::to_string(options.tamper));
            const Outcome outcome = run(scene, options);
            ASSERT_NO_FATAL_FAILURE(expect_nobody_deceived(outcome.report, outcome.right));
        }
    }
    std::uint64_t changed_ = 0;
};

TEST_P(Attacked, NoticesEveryChangedMessage) {
    Random random(7);
    for (const auto& cluster : attacked_clusters())
        for (int i = 0; i < (sanitized ? 3 : 12); ++i)  // another placement, root, byte and order of events
            ASSERT_NO_FATAL_FAILURE(
                expect_noticed(cluster, i % 3 ? Sizes{true, 5} : Sizes{false, 0}, random));
    EXPECT_GT(changed_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Movement, Attacked, testing::ValuesIn(all_movements()), movement_name);

/// Broadcasts of several segments.
class AttackedMuch : public Attacked {};

TEST_P(AttackedMuch, NoticesEveryChangedSegment) {
    Random random(8);
    const std::size_t bytes = 4 * coll::bcast_segment(0) + 5;
    ASSERT_NO_FATAL_FAILURE(expect_noticed({1, 1, 1}, {true, bytes}, random));
    ASSERT_NO_FATAL_FAILURE(expect_noticed({1, 2, 2}, {true, bytes}, random));
    Options options = any_options(random);
    options.few_parts = true;
    const std::size_t five_pieces = 4 * coll::bcast_segment(0, 2) + 5;
    ASSERT_NO_FATAL_FAILURE(expect_noticed({1, 1, 1}, {true, five_pieces}, random, options));
    EXPECT_GT(changed_, 0u);
}

INSTANTIATE_TEST_SUITE_P(Movement, AttackedMuch, testing::ValuesIn(movements({Collective::bcast})),
                         movement_name);

}  // namespace
}  // namespace mpisec::test
