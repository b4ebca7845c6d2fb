// Table II of Lahijani et al. (IPDPS 2021): the six metrics of each all-gather, counted, against the
// formulas. Where these are not the paper's, docs/collectives.md says why.
#include <bit>

#include "support.hpp"

namespace mpisec::test {
namespace {

struct Formulas {
    /// r_c s_c r_e s_e r_d s_d; sizes in units of m.
    std::uint64_t rounds, bytes, seals, sealed, opens, opened;
    friend bool operator==(const Formulas&, const Formulas&) = default;
    friend std::ostream& operator<<(std::ostream& to, const Formulas& f) {
        return to << "r_c " << f.rounds << ", s_c " << f.bytes << " m, r_e " << f.seals << ", s_e "
                  << f.sealed << " m, r_d " << f.opens << ", s_d " << f.opened << " m";
    }
};

std::uint64_t lg(std::uint64_t n) {
    return static_cast<std::uint64_t>(std::bit_width(n)) - 1;
}

Formulas formulas(std::string_view algorithm, std::uint64_t p, std::uint64_t n) {
    const std::uint64_t l = p / n, turns = (n - 1 + l - 1) / l;
    if (algorithm == "naive") return {lg(p), p - 1, 1, 1, p - 1, p - 1};
    if (algorithm == "o-ring" && l == 1)
        return {p - 1, p - 1, 1, 1, p - 1, p - 1};  // hands ciphertext on as it came
    if (algorithm == "o-ring") return {p - 1, p - 1, p - 1, p - 1, p - 1, p - 1};
    if (algorithm == "o-rd")
        return {lg(p), p - 1, 1, l, n - 1, p - l};  // paper's table: r_d = p - l, its text: N - 1
    if (algorithm == "o-rd2")
        return {lg(p), p - 1, lg(n), p - l, lg(n), p - l};  // paper's table: r_c = lg N, its text: as O-RD
    if (algorithm == "c-ring") return {n + l - 2, p - 1, 1, 1, n - 1, n - 1};
    if (algorithm == "c-rd") return {lg(p), p - 1, 1, 1, n - 1, n - 1};
    if (algorithm == "hs1")
        return {lg(n), p - l, 1,
                l,     turns, turns * l};  // paper's table rounds ceil((N - 1) / l) up to ceil(N / l)
    if (algorithm == "hs2") return {lg(n), p - l, 1, 1, n - 1, n - 1};
    if (algorithm == "hsc") return {lg(n), n - 1, 1, 1, n - 1, n - 1};
    if (algorithm == "pipeline")  // eight segments in a block
        return {8 * (n - 1), n - 1, 8, 1, 8 * (n - 1), n - 1};
    ADD_FAILURE() << "no formulas for " << algorithm;
    return {};
}

/// Ours is never more than the paper's simplification for powers of two.
TEST(TableTwo, Hs1InThePapersForm) {
    for (std::uint64_t p = 4; p <= 1024; p *= 2)
        for (std::uint64_t n = 2; n <= p; n *= 2) {
            const std::uint64_t l = p / n;
            const Formulas ours = formulas("hs1", p, n);
            EXPECT_LE(ours.opens, (n + l - 1) / l);
            EXPECT_LE(ours.opened, std::max(n, l));
            if (l == 1) continue;  // where the paper's ceil(N / l) is one too many
            EXPECT_EQ(ours.opens, (n + l - 1) / l);
            EXPECT_EQ(ours.opened, std::max(n, l));
        }
}

TEST_P(EveryAllgather, CostsWhatTableTwoSays) {
    constexpr std::uint64_t m = 1 << 20;  // much more than all tags together
    Options options;
    options.data = false;
    for (int p = 4; p <= (sanitized ? 64 : 1024); p *= 2)
        for (int nodes = 2; nodes <= std::min(p, 64); nodes *= 2) {
            SCOPED_TRACE(std::to_string(p) + " ranks on " + std::to_string(nodes) + " nodes");
            std::vector<int> node;
            for (int rank = 0; rank < p; ++rank) node.push_back(rank / (p / nodes));
            const Layout layout = equal_blocks(p, m);
            coll::Call call;
            call.from = {fabric::sim::untouchable(), layout.offset, layout.size};
            const Report report = fabric::sim::run(
                Topology(node), {}, [&](fabric::Fabric& fabric) { return GetParam().run(fabric, call); },
                options);
            ASSERT_EQ(report.error, "");
            const auto worst = report.worst();
            const Formulas counted{worst.communication_rounds,
                                   worst.communicated_bytes / m,
                                   worst.seals,
                                   worst.sealed_bytes / m,
                                   worst.opens,
                                   worst.opened_bytes / m};
            EXPECT_EQ(counted, formulas(GetParam().name, static_cast<std::uint64_t>(p),
                                        static_cast<std::uint64_t>(nodes)));
        }
}

/// What is counted does not depend on whether bytes are moved: `mpisec sim` moves none.
TEST_P(EveryAllgather, CostsTheSameWithoutData) {
    Random random(3);
    for (int i = 0; i < 20; ++i) {
        std::vector<int> sizes;
        for (int node = pick(random, 1, 6); node > 0; --node) sizes.push_back(pick(random, 1, 5));
        const Topology topology(place(sizes, pick(random, 0, 2), random).node);
        const Layout layout = unequal_blocks(topology.ranks(), random);
        const ClusterModel model = random_model(random);
        Options options;
        options.seed = random();
        const Report moved = gather(GetParam(), topology, layout, model, options).report;
        options.data = false;
        coll::Call call;
        call.from = {fabric::sim::untouchable(), layout.offset, layout.size};
        const Report counted = fabric::sim::run(
            topology, model, [&](fabric::Fabric& fabric) { return GetParam().run(fabric, call); }, options);
        EXPECT_EQ(counted.error, "");
        EXPECT_EQ(counted.seconds, moved.seconds);
        EXPECT_EQ(counted.worst().communicated_bytes, moved.worst().communicated_bytes);
    }
}

/// What was received is opened while the next message travels, so that only the last openings take time of
/// their own.
TEST(Overlap, OpeningIsHiddenBehindTheNetwork) {
    ClusterModel model;
    model.between = {0, 1};
    model.open = {0, 0.1};
    const Topology topology({0, 1, 2, 3});
    const auto seconds = [&](std::string_view name) {
        for (const Entry& entry : coll::algorithms(coll::Collective::allgather))
            if (entry.name == name)
                return gather(entry, topology, equal_blocks(4, 1000), model, {}).report.seconds;
        return 0.0;
    };
    for (const char* ring : {"o-ring", "c-ring"}) EXPECT_NEAR(seconds(ring), 3 * 1016 + 100, 1e-6) << ring;
    for (const char* doubling : {"naive", "o-rd", "c-rd"})
        EXPECT_NEAR(seconds(doubling), 3 * 1016 + 2 * 100, 1e-6) << doubling;
    EXPECT_NEAR(seconds("o-rd2"), 1016 + 100 + 2016 + 200, 1e-6);  // must open before it can seal anew
}

INSTANTIATE_TEST_SUITE_P(Allgather, EveryAllgather,
                         testing::ValuesIn(coll::algorithms(coll::Collective::allgather)), test_name);

}  // namespace
}  // namespace mpisec::test
