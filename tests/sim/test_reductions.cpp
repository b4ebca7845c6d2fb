// Every reduction gives every rank what the operands make in rank order, on clusters of any shape.
#include "reductions.hpp"

namespace mpisec::test {
namespace {

void expect_reduces(const Reducer& reducer, const std::vector<int>& node_sizes, Random& random) {
    const Problem problem = random_problem(node_sizes, pick(random, 0, 2), random);
    if (!suits(reducer, problem)) return;
    Options options;
    options.seed = random();
    SCOPED_TRACE(describe(problem, options));
    const std::vector<Bytes> given = random_operands(problem);
    const Reduced reduced = run(reducer, problem, given, options);
    ASSERT_EQ(reduced.report.error, "");
    for (std::size_t rank = 0; rank < given.size(); ++rank) {
        ASSERT_FALSE(reduced.report.failed[rank]) << "rank " << rank;
        ASSERT_TRUE(reduced.intact[rank]) << "rank " << rank;
        ASSERT_TRUE(is_right(problem, reducer.collective, given, reduced.results[rank], rank))
            << "rank " << rank;
    }
}

TEST_P(EveryReduction, OnClustersOfEveryShape) {
    Random random(20210517);
    for (int nodes = 1; nodes <= 17; ++nodes) {
        if (sanitized && nodes > 5 && nodes != 8 && nodes != 17) continue;
        for (int per_node = 1; per_node <= 9; ++per_node) {
            if (sanitized && per_node > 4 && per_node != 9) continue;
            for (int i = 0; i < (sanitized ? 1 : 3); ++i)
                ASSERT_NO_FATAL_FAILURE(expect_reduces(
                    GetParam(), std::vector<int>(static_cast<std::size_t>(nodes), per_node), random));
        }
        for (int i = 0; i < (sanitized ? 4 : 12); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 9));
            ASSERT_NO_FATAL_FAILURE(expect_reduces(GetParam(), sizes, random));
        }
    }
}

/// Small clusters many times: there are few of them, so most combinations of shape, placement, operation,
/// size and model come up.
TEST_P(EveryReduction, OnManySmallClusters) {
    Random random(4);
    for (int nodes = 1; nodes <= (sanitized ? 3 : 4); ++nodes)
        for (int i = 0; i < (sanitized ? 50 : 500); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 3));
            ASSERT_NO_FATAL_FAILURE(expect_reduces(GetParam(), sizes, random));
        }
}

INSTANTIATE_TEST_SUITE_P(Reductions, EveryReduction, testing::ValuesIn(every_reducer()), reducer_test_name);

}  // namespace
}  // namespace mpisec::test
