// Whatever message between nodes is changed: nobody waits for ever, somebody notices, and who does not notice
// has the right bytes (S2, S8).
#include <numeric>

#include "support.hpp"

namespace mpisec::test {
namespace {

void expect_noticed(const Entry& algorithm, const std::vector<int>& node_sizes, int kind, Random& random) {
    const Placement placement = place(node_sizes, kind, random);
    const Topology topology(placement.node);
    const Layout layout =
        pick(random, 0, 1) ? equal_blocks(topology.ranks(), 5) : unequal_blocks(topology.ranks(), random);
    const ClusterModel model = random_model(random);
    Options options = any_options(random);
    const std::uint64_t messages =
        gather(algorithm, topology, layout, model, options).report.messages_between;
    if (algorithm.name == "pipeline" &&
        std::accumulate(layout.size.begin(), layout.size.end(), std::size_t{0}) == 0)
        return;
    ASSERT_GT(messages, 0u);  // others send empty sealed blocks
    for (options.tamper = 1; options.tamper <= messages; ++options.tamper) {
        SCOPED_TRACE(describe(node_sizes, placement, layout, options));
        const Outcome outcome = gather(algorithm, topology, layout, model, options);
        ASSERT_NO_FATAL_FAILURE(expect_nobody_deceived(outcome.report, outcome.right));
    }
}

TEST_P(EveryAllgather, NoticesEveryChangedMessage) {
    Random random(7);
    for (const auto& sizes : attacked_clusters())
        for (int kind = 0; kind < 3; ++kind)
            for (int i = 0; i < (sanitized ? 1 : 8); ++i)  // another byte, another order of events
                ASSERT_NO_FATAL_FAILURE(expect_noticed(GetParam(), sizes, kind, random));
}

INSTANTIATE_TEST_SUITE_P(Allgather, EveryAllgather,
                         testing::ValuesIn(coll::algorithms(coll::Collective::allgather)), test_name);

}  // namespace
}  // namespace mpisec::test
