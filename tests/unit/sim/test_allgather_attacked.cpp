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
    Options options;
    options.seed = random();
    const std::uint64_t messages =
        gather(algorithm, topology, layout, model, options).report.messages_between;
    if (algorithm.name == "pipeline" &&
        std::accumulate(layout.size.begin(), layout.size.end(), std::size_t{0}) == 0)
        return;
    ASSERT_GT(messages, 0u);  // others send empty sealed blocks
    for (options.tamper = 1; options.tamper <= messages; ++options.tamper) {
        SCOPED_TRACE(describe(node_sizes, placement, layout, options));
        const Outcome outcome = gather(algorithm, topology, layout, model, options);
        ASSERT_EQ(outcome.report.error, "");
        ASSERT_TRUE(std::count(outcome.report.failed.begin(), outcome.report.failed.end(), 1))
            << "nobody noticed";
        for (std::size_t rank = 0; rank < outcome.right.size(); ++rank)
            ASSERT_TRUE(outcome.report.failed[rank] || outcome.right[rank])
                << "rank " << rank << " was deceived";
    }
}

TEST_P(EveryAllgather, NoticesEveryChangedMessage) {
    Random random(7);
    const std::vector<std::vector<int>> clusters = {
        {1, 1},    {2, 2},       {1, 1, 1},       {2, 1, 3},
        {3, 3, 3}, {2, 2, 2, 2}, {1, 4, 2, 1, 3}, {1, 1, 1, 1, 1, 1, 1}};
    for (const auto& sizes : clusters)
        for (int kind = 0; kind < 3; ++kind)
            for (int i = 0; i < (sanitized ? 1 : 8); ++i)  // another byte, another order of events
                ASSERT_NO_FATAL_FAILURE(expect_noticed(GetParam(), sizes, kind, random));
}

INSTANTIATE_TEST_SUITE_P(Allgather, EveryAllgather,
                         testing::ValuesIn(coll::algorithms(coll::Collective::allgather)), test_name);

}  // namespace
}  // namespace mpisec::test
