// Every reduction gives every rank what the operands make in rank order, on clusters of any shape.
#include "coll/patterns/chunks.hpp"
#include "reductions.hpp"

namespace mpisec::test {
namespace {

#ifdef MPISEC_TINY_CHUNKS
constexpr bool fewer = true;
#else
constexpr bool fewer = sanitized;
#endif

void expect_right(const Reducer& reducer, const Problem& problem, const Options& options) {
    SCOPED_TRACE(describe(problem, options));
    const std::vector<Bytes> given = random_operands(problem);
    const Reduced reduced = run(reducer, problem, given, options);
    ASSERT_EQ(reduced.report.error, "");
    const std::vector<char> right = rights(problem, reducer.collective, prefixes(problem, given), reduced);
    for (std::size_t rank = 0; rank < given.size(); ++rank) {
        ASSERT_FALSE(reduced.report.failed[rank]) << "rank " << rank;
        ASSERT_TRUE(right[rank]) << "rank " << rank;
    }
}

void expect_reduces(const Reducer& reducer, const std::vector<int>& node_sizes, Random& random) {
    const Problem problem = random_problem(reducer.collective, node_sizes, pick(random, 0, 2), random);
    Options options = any_options(random);
    if (suits(reducer, problem)) expect_right(reducer, problem, options);
}

TEST_P(EveryReduction, OnClustersOfEveryShape) {
    Random random(20210517);
    for (int nodes = 1; nodes <= 17; ++nodes) {
        if (fewer && nodes > 5 && nodes != 8 && nodes != 17) continue;
        for (int per_node = 1; per_node <= 9; ++per_node) {
            if (fewer && per_node > 4 && per_node != 9) continue;
            ASSERT_NO_FATAL_FAILURE(expect_reduces(
                GetParam(), std::vector<int>(static_cast<std::size_t>(nodes), per_node), random));
        }
        for (int i = 0; i < (fewer ? 4 : 8); ++i) {
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
    for (int nodes = 1; nodes <= (sanitized ? 3 : 5); ++nodes)
        for (int i = 0; i < (sanitized ? 20 : 600); ++i) {
            std::vector<int> sizes;
            for (int node = 0; node < nodes; ++node) sizes.push_back(pick(random, 1, 4));
            ASSERT_NO_FATAL_FAILURE(expect_reduces(GetParam(), sizes, random));
        }
}

#ifndef MPISEC_TINY_CHUNKS
void expect_reduces_long(const Reducer& reducer, const std::vector<int>& node_sizes, std::size_t bytes,
                         Random& random) {
    Problem problem = random_problem(reducer.collective, node_sizes, 0, random);
    problem.operation = exact_operation(pick(random, 0, 1) ? 3 : 6);  // 12 bytes: no power of two
    problem.elements = bytes / problem.operation->element;
    if (reducer.collective == Collective::reduce_scatter) deal(problem, random);
    if (suits(reducer, problem)) expect_right(reducer, problem, any_options(random));
}

/// Several segments, and several turns through shared memory.
TEST_P(EveryReduction, OfLongVectors) {
    Random random(11);
    const std::size_t turn = coll::chunk_bytes;
    ASSERT_NO_FATAL_FAILURE(expect_reduces_long(GetParam(), {1, 3, 2}, turn / 2, random));
    if (sanitized) return;
    ASSERT_NO_FATAL_FAILURE(expect_reduces_long(GetParam(), {2, 2}, turn + 99, random));
    ASSERT_NO_FATAL_FAILURE(expect_reduces_long(GetParam(), {2, 2, 3}, 5 * turn / 2, random));
}

/// Nothing but the fabric touches data: what Options::data = false stands on.
TEST_P(EveryReduction, LeavesDataToTheFabric) {
    Random random(5);
    for (std::size_t elements : {std::size_t{5}, std::size_t{2'000'000}}) {
        Problem problem = random_problem(GetParam().collective, {4, 3, 4}, 0, random);
        problem.operation = exact_operation(0);
        problem.elements = elements;
        problem.parts.assign(11, 0);
        problem.parts[3] = problem.bytes();
        if (!suits(GetParam(), problem)) continue;
        Options options;
        options.data = false;
        const coll::Call call =
            call_of(problem, GetParam().collective, {fabric::sim::untouchable(), problem.bytes()});
        const Report report = fabric::sim::run(
            Topology(problem.placement.node), problem.model,
            [&](fabric::Fabric& fabric) { return GetParam().entry.run(fabric, call); }, options);
        ASSERT_EQ(report.error, "");
    }
}

/// The most memory that a rank takes for a reduction of vectors that have `chunks` chunks.
std::size_t memory_of(const Reducer& reducer, const std::vector<int>& node_sizes, std::size_t chunks,
                      Random& random) {
    Problem problem = random_problem(reducer.collective, node_sizes, 0, random);
    const std::size_t ranks = problem.placement.node.size();
    problem.operation = exact_operation(0);
    problem.elements = chunks * ranks * coll::chunk_bytes / problem.operation->element;
    problem.parts.assign(ranks, problem.bytes() / ranks);
    Options options;
    options.data = false;
    const coll::Call call =
        call_of(problem, reducer.collective, {fabric::sim::untouchable(), problem.bytes()});
    const Report report = fabric::sim::run(
        Topology(problem.placement.node), problem.model,
        [&](fabric::Fabric& fabric) { return reducer.entry.run(fabric, call); }, options);
    EXPECT_EQ(report.error, "");
    return *std::ranges::max_element(report.room_bytes);
}

/// What has been sent, opened or combined is used again: only the algorithms for short vectors take memory as long as the vector.
TEST_P(EveryReduction, OfLongerVectorsTakesNoMoreMemory) {
    const std::string_view name = GetParam().entry.name;
    if (name == "recursive-doubling" || name == "binomial" || name == "concurrent")
        GTEST_SKIP() << "for short vectors";
    Random random(9);
    for (const std::vector<int>& node_sizes :
         {std::vector<int>{1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {2, 2}, {3, 3, 3}})
        EXPECT_LE(
            memory_of(GetParam(), node_sizes, 24, random),
            memory_of(GetParam(), node_sizes, 6, random) * 3 / 2)  // how much is under way varies a little
            << "nodes: " << node_sizes.size();
}

#endif

/// The advice of the MPI standard (section 6.9.1) as a promise: the same bits on all ranks, also where
/// rounding depends on which operands are combined first.
TEST_P(EveryAllreduce, OfFloatsHasTheSameBitsEverywhere) {
    Random random(6);
    for (int i = 0; i < (sanitized ? 20 : 400); ++i) {
        std::vector<int> sizes;
        for (int node = pick(random, 1, 9); node > 0; --node) sizes.push_back(pick(random, 1, 4));
        Problem problem = random_problem(GetParam().collective, sizes, pick(random, 0, 2), random);
        problem.operation = float_sum();
        std::vector<Bytes> given(problem.placement.node.size(), Bytes(problem.bytes()));
        for (Bytes& operand : given)
            for (std::size_t at = 0; at < operand.size(); at += sizeof(float)) {
                const float value = std::uniform_real_distribution(-1.f, 1.f)(random);
                std::memcpy(operand.data() + at, &value, sizeof value);
            }
        if (!suits(GetParam(), problem)) continue;
        Options options = any_options(random);
        SCOPED_TRACE(describe(problem, options));
        const Reduced reduced = run(GetParam(), problem, given, options);
        for (const Bytes& result : reduced.results) ASSERT_EQ(result, reduced.results[0]);
    }
}

#ifndef MPISEC_TINY_CHUNKS
/// The tables at the top of src/coll/*.cpp, for 8 nodes of 4 ranks and 8192 bytes.
TEST(Costs, AreThoseOfTheTables) {
    struct Row {
        Collective collective;
        std::string_view algorithm;
        std::uint64_t rounds, bytes, seals, opens;
    };
    const std::vector<Row> rows = {{Collective::reduce, "binomial", 5, 3 * 8192, 1, 3},
                                   {Collective::reduce, "smp", 3, 3 * 8192, 1, 3},
                                   {Collective::reduce, "multi-leader", 3, 3 * 2048, 1, 3},
                                   {Collective::reduce, "rabenseifner", 10, 2 * 2048 * 7 / 8, 4, 10},
                                   {Collective::allreduce, "recursive-doubling", 5, 3 * 8192, 3, 3},
                                   {Collective::allreduce, "smp", 3, 3 * 8192, 3, 3},
                                   {Collective::allreduce, "concurrent", 3, 3 * 8192, 3, 3},
                                   {Collective::allreduce, "multi-leader", 3, 3 * 2048, 3, 3},
                                   {Collective::allreduce, "rabenseifner", 6, 2 * 2048 * 7 / 8, 4, 10},
                                   {Collective::allreduce, "ring", 14, 2 * 2048 * 7 / 8, 8, 14},
                                   {Collective::reduce_scatter, "recursive-doubling", 5, 3 * 8192, 3, 3},
                                   {Collective::reduce_scatter, "allreduce", 3, 3 * 8192, 3, 3},
                                   {Collective::reduce_scatter, "smp", 7, 2048 * 7 / 8, 7, 7},
                                   {Collective::scan, "recursive-doubling", 5, 5 * 8192, 5, 5},
                                   {Collective::scan, "smp", 3, 3 * 8192, 3, 3},
                                   {Collective::scan, "multi-leader", 3, 3 * 2048, 3, 3},
                                   {Collective::exscan, "recursive-doubling", 5, 5 * 8192, 5, 5},
                                   {Collective::exscan, "smp", 3, 3 * 8192, 3, 3},
                                   {Collective::exscan, "multi-leader", 3, 3 * 2048, 3, 3}};
    EXPECT_EQ(rows.size(), every_reducer().size());
    Random random(1);
    for (const Row& row : rows) {
        SCOPED_TRACE(std::string(coll::name(row.collective)) + ' ' + std::string(row.algorithm));
        Problem problem;
        problem.placement = place(std::vector<int>(8, 4), 0, random);
        problem.operation = exact_operation(0);
        problem.elements = 8192 / problem.operation->element;
        problem.parts.assign(32, 8192 / 32);
        const Reducer reducer{row.collective, *coll::find_algorithm(row.collective, row.algorithm)};
        const auto worst = run(reducer, problem, random_operands(problem), Options()).report.worst();
        EXPECT_EQ(worst.communication_rounds, row.rounds);
        EXPECT_EQ(worst.opened_bytes, row.bytes);
        EXPECT_EQ(worst.seals, row.seals);
        EXPECT_EQ(worst.opens, row.opens);
    }
}

#endif

INSTANTIATE_TEST_SUITE_P(Reductions, EveryReduction, testing::ValuesIn(every_reducer()), reducer_test_name);
INSTANTIATE_TEST_SUITE_P(Reductions, EveryAllreduce,
                         testing::ValuesIn(every_reducer({Collective::allreduce})), reducer_test_name);

}  // namespace
}  // namespace mpisec::test
