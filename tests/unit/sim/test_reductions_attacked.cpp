// Whatever message between nodes is changed, and whatever combination reports an error: nobody waits for
// ever, somebody notices, and who does not notice has the right result (S2, S8).
#include "reductions.hpp"

namespace mpisec::test {
namespace {

Problem random_attacked(Collective collective, const std::vector<int>& node_sizes, int placement,
                        Random& random) {
    Problem problem = random_problem(collective, node_sizes, placement, random);
    if (problem.elements > 0) return problem;
    problem.elements = 1;
    problem.parts.assign(problem.placement.node.size(), 0);
    problem.parts.back() = problem.operation->element;
    return problem;
}

void expect_noticed(const Reducer& reducer, const Problem& problem, const std::vector<Bytes>& given,
                    const std::vector<Bytes>& before, const Options& options) {
    SCOPED_TRACE(describe(problem, options));
    const Reduced reduced = run(reducer, problem, given, options);
    expect_nobody_deceived(reduced.report, rights(problem, reducer.collective, before, reduced));
}

/// Each message between nodes changed in turn.
void expect_changes_noticed(const Reducer& reducer, const Problem& problem, Options options) {
    const std::vector<Bytes> given = random_operands(problem), before = prefixes(problem, given);
    const std::uint64_t messages = run(reducer, problem, given, options).report.messages_between;
    ASSERT_GT(messages, 0u);
    for (options.tamper = 1; options.tamper <= messages; ++options.tamper)
        ASSERT_NO_FATAL_FAILURE(expect_noticed(reducer, problem, given, before, options));
}

/// Each call of the operation reports an error in turn.
void expect_errors_noticed(const Reducer& reducer, const Problem& problem, const Options& options) {
    const std::vector<Bytes> given = random_operands(problem), before = prefixes(problem, given);
    problem.operation->combined = 0;
    run(reducer, problem, given, options);
    const std::uint64_t combinations = problem.operation->combined;
    for (std::uint64_t n = 1; n <= combinations; ++n) {
        problem.operation->fails_at = n;
        ASSERT_NO_FATAL_FAILURE(expect_noticed(reducer, problem, given, before, options));
    }
    problem.operation->fails_at = 0;
}

template <class Expect>
void on_clusters(const Reducer& reducer, Random& random, int times, Expect expect) {
    for (const auto& sizes : attacked_clusters())
        for (int placement = 0; placement < 3; ++placement)
            for (int i = 0; i < times; ++i) {  // another byte, another order of events
                const Problem problem = random_attacked(reducer.collective, sizes, placement, random);
                Options options = any_options(random);
                if (!suits(reducer, problem)) continue;
                ASSERT_NO_FATAL_FAILURE(expect(reducer, problem, options));
            }
}

TEST_P(EveryReduction, NoticesEveryChangedMessage) {
    Random random(7);
    on_clusters(GetParam(), random, sanitized ? 1 : 8, expect_changes_noticed);
}

TEST_P(EveryReduction, TellsWhenTheOperationFails) {
    Random random(8);
    on_clusters(GetParam(), random, sanitized ? 1 : 4, expect_errors_noticed);
}

INSTANTIATE_TEST_SUITE_P(Reductions, EveryReduction, testing::ValuesIn(every_reducer()), reducer_test_name);

}  // namespace
}  // namespace mpisec::test
