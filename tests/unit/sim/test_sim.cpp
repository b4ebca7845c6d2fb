// The simulation itself: its clock, and the faults of an algorithm that it must report, without which the
// other tests would prove nothing.
#include <algorithm>

#include "fabric/sim/sim.hpp"

#include <gtest/gtest.h>

namespace mpisec::fabric::sim {
namespace {

constexpr std::size_t n = 1000;

ClusterModel model() {
    ClusterModel model;
    model.between = {100, 2};
    model.inside = {10, 1};
    model.seal = {7, 0.5};
    model.open = {5, 0.25};
    model.copy = {3, 0.125};
    return model;
}

std::string error_of(const std::vector<int>& node_of_rank, const Program& program,
                     const Options& options = {}) {
    return run(Topology(node_of_rank), {}, program, options).error;
}

/// Rank r of the first half of the ranks sends n sealed bytes to rank r of the other half.
Task across(Fabric& fabric) {
    const int half = fabric.topology().ranks() / 2;
    const CiphertextBuffer room = fabric.ciphertext(n);
    if (fabric.rank() < half)
        co_await fabric.send(fabric.rank() + half, room);
    else
        co_await fabric.receive(fabric.rank() - half, room);
}

TEST(VirtualTime, OfAMessageBetweenNodes) {
    EXPECT_DOUBLE_EQ(run(Topology({0, 1}), model(), across).seconds, 100 + 2.0 * n);
}
TEST(VirtualTime, OfAMessageInsideANode) {
    EXPECT_DOUBLE_EQ(run(Topology({0, 0}), model(), across).seconds, 10 + 1.0 * n);
}

TEST(VirtualTime, OfSealingOpeningAndCopying) {
    const Report report = run(Topology({0}), model(), [](Fabric& fabric) -> Task {
        const CiphertextBuffer sealed_block = fabric.ciphertext(sealed_bytes(n));
        const PlaintextBuffer plain = fabric.plaintext(n), again = fabric.plaintext(n);
        fabric.seal(sealed_block, plain, {0, 0});
        fabric.open(again, sealed_block, {0, 0});
        fabric.copy(plain, again);
        co_return;
    });
    EXPECT_EQ(report.error, "");
    EXPECT_FALSE(report.failed[0]);
    EXPECT_DOUBLE_EQ(report.seconds, 7 + 0.5 * n + 5 + 0.25 * n + 3 + 0.125 * n);
}

TEST(VirtualTime, WorkGoesOnWhileAMessageTravels) {
    const Report report = run(Topology({0, 1}), model(), [](Fabric& fabric) -> Task {
        const CiphertextBuffer sealed_block = fabric.ciphertext(sealed_bytes(n)),
                               other = fabric.ciphertext(sealed_bytes(n));
        const int peer = 1 - fabric.rank();
        fabric.seal(sealed_block, fabric.plaintext(n), {fabric.rank(), 0});
        auto receiving = fabric.receive(peer, other);
        auto sending = fabric.send(peer, sealed_block);
        fabric.open(fabric.plaintext(n), sealed_block, {fabric.rank(), 0});
        co_await receiving;
        co_await sending;
    });
    EXPECT_EQ(report.error, "");
    EXPECT_DOUBLE_EQ(report.seconds, 7 + 0.5 * n + 100 + 2.0 * sealed_bytes(n));
}

TEST(VirtualTime, RanksOfANodeTakeTurnsOnASharedLink) {
    const Topology topology({0, 0, 0, 1, 1, 1});
    ClusterModel shared = model();
    EXPECT_DOUBLE_EQ(run(topology, shared, across).seconds, 100 + 2.0 * n);
    shared.shared_link = true;
    EXPECT_DOUBLE_EQ(run(topology, shared, across).seconds, 100 + 3 * 2.0 * n);
}

TEST(VirtualTime, ABarrierEndsWithTheLastRank) {
    const Report report = run(Topology({0, 0}), model(), [](Fabric& fabric) -> Task {
        if (fabric.rank() == 1) fabric.copy(fabric.plaintext(n), fabric.plaintext(n));
        co_await fabric.node_barrier();
    });
    EXPECT_DOUBLE_EQ(report.seconds, 3 + 0.125 * n + 10);
}

TEST(VirtualTime, OfABarrierThatHasItsOwn) {
    ClusterModel slow = model();
    slow.barrier = 17;
    const Report report =
        run(Topology({0, 0, 1}), slow, [](Fabric& fabric) -> Task { co_await fabric.node_barrier(); });
    EXPECT_DOUBLE_EQ(report.seconds, 17);
}

TEST(VirtualTime, OfCopyingToAndFromSharedMemory) {
    ClusterModel far = model();
    far.shared = {40, 2};
    const Report report = run(Topology({0}), far, [](Fabric& fabric) -> Task {
        const PlaintextBuffer shared = fabric.shared_plaintext(2 * n), own = fabric.plaintext(n);
        fabric.copy(shared.last(n), own);
        fabric.copy(own, shared.first(n));
        fabric.copy(own, fabric.plaintext(n));
        co_return;
    });
    EXPECT_EQ(report.error, "");
    EXPECT_DOUBLE_EQ(report.seconds, 2 * (40 + 2.0 * n) + 3 + 0.125 * n);
}

TEST(VirtualTime, OfWhatTheCacheDoesNotHold) {
    ClusterModel small = model();
    small.cache = 1.5 * n;
    small.copy.beyond = 1;
    small.inside.beyond = 4;
    const Report copies = run(Topology({0}), small, [](Fabric& fabric) -> Task {
        for (int i = 0; i < 3; ++i) fabric.copy(fabric.plaintext(n), fabric.plaintext(n));
        co_return;
    });
    EXPECT_DOUBLE_EQ(copies.seconds, 3 * 3 + 0.125 * 1.5 * n + 1.5 * n);
    const Report messages = run(Topology({0, 0}), small, [](Fabric& fabric) -> Task {
        for (int i = 0; i < 2; ++i) {
            if (fabric.rank() == 0)
                co_await fabric.send_here(1, fabric.plaintext(n));
            else
                co_await fabric.receive_here(0, fabric.plaintext(n));
        }
    });
    EXPECT_DOUBLE_EQ(messages.seconds, 10 + 1.5 * n + 4 * 0.5 * n);
}

TEST(VirtualTime, InsideANodeTheReceiverFetchesWhenItComes) {
    const Report late = run(Topology({0, 0}), model(), [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0) co_return co_await fabric.send_here(1, fabric.plaintext(n));
        fabric.copy(fabric.plaintext(n), fabric.plaintext(n));
        co_await fabric.receive_here(0, fabric.plaintext(n));
    });
    EXPECT_DOUBLE_EQ(late.seconds, 3 + 0.125 * n + 1.0 * n);
    const Report two = run(Topology({0, 0, 0}), model(), [](Fabric& fabric) -> Task {
        if (fabric.rank() > 0) co_return co_await fabric.send_here(0, fabric.plaintext(n));
        co_await fabric.receive_here(1, fabric.plaintext(n));
        co_await fabric.receive_here(2, fabric.plaintext(n));
    });
    EXPECT_DOUBLE_EQ(two.seconds, 10 + 2 * 1.0 * n);
}

/// Two ranks share a link; who of them is first, which the seed decides, tells in the time, because one
/// receiver has work to do afterwards.
Task race(Fabric& fabric) {
    co_await across(fabric);
    if (fabric.rank() == 2) fabric.copy(fabric.plaintext(n), fabric.plaintext(n));
}

TEST(VirtualTime, FollowsFromTheSeed) {
    ClusterModel shared = model();
    shared.shared_link = true;
    std::vector<double> times;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Options options;
        options.seed = seed;
        times.push_back(run(Topology({0, 0, 1, 1}), shared, race, options).seconds);
        EXPECT_EQ(run(Topology({0, 0, 1, 1}), shared, race, options).seconds, times.back());
    }
    std::sort(times.begin(), times.end());
    EXPECT_LT(times.front(), times.back());
}

TEST(Faults, ABoxSealedTwice) {
    const Program twice = [](Fabric& fabric) -> Task {
        for (int i = 0; i < 2; ++i)
            fabric.seal(fabric.ciphertext(sealed_bytes(1)), fabric.plaintext(1), {fabric.rank(), 5});
        co_return;
    };
    EXPECT_EQ(error_of({0}, twice), "rank 0 seals sealed block 5 twice");
}

TEST(Faults, SealingInTheNameOfAnother) {
    const Program forge = [](Fabric& fabric) -> Task {
        fabric.seal(fabric.ciphertext(sealed_bytes(1)), fabric.plaintext(1), {1, 0});
        co_return;
    };
    EXPECT_EQ(error_of({0}, forge), "rank 0 seals in the name of rank 1");
}

Task in_clear(Fabric& fabric) {
    const PlaintextBuffer room = fabric.plaintext(n);
    if (fabric.rank() == 0)
        co_await fabric.send_here(1, room);
    else
        co_await fabric.receive_here(0, room);
}

TEST(Faults, PlaintextForAnotherNode) {
    EXPECT_EQ(error_of({0, 0}, in_clear), "");
    EXPECT_EQ(error_of({0, 1}, in_clear), "rank 0 sends plaintext to another node");
}

TEST(Faults, WaitingForEver) {
    const Program deaf = [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0) co_await fabric.receive_here(1, fabric.plaintext(1));
    };
    EXPECT_EQ(error_of({0, 0}, deaf), "rank 0 waits for ever");
    const Program alone = [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0) co_await fabric.node_barrier();
    };
    EXPECT_EQ(error_of({0, 0}, alone), "rank 0 waits for ever");
}

TEST(Faults, AMessageThatNobodyReceives) {
    const Program unheard = [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0) co_await fabric.send_here(1, fabric.plaintext(1));
    };
    EXPECT_EQ(error_of({0, 0}, unheard), "a message is never received");
}

TEST(Faults, AMessageThatIsNotAwaited) {
    const Program hasty = [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0)
            (void)fabric.send_here(1, fabric.plaintext(1));
        else
            co_await fabric.receive_here(0, fabric.plaintext(1));
    };
    EXPECT_EQ(error_of({0, 0}, hasty), "rank 0 does not await all that it started");
}

TEST(Faults, SizesThatDoNotFit) {
    const Program longer = [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0)
            co_await fabric.send_here(1, fabric.plaintext(2));
        else
            co_await fabric.receive_here(0, fabric.plaintext(1));
    };
    EXPECT_EQ(error_of({0, 0}, longer), "rank 1 is sent another message than it expects");
    const Program shared = [](Fabric& fabric) -> Task {
        fabric.shared_plaintext(static_cast<std::size_t>(fabric.rank()));
        co_return;
    };
    EXPECT_EQ(error_of({0, 0}, shared), "ranks of a node ask for shared memory of different sizes");
}

TEST(Order, MessagesOfAPairDoNotOvertakeEachOther) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Options options;
        options.seed = seed;
        bool in_order = true;
        const Program many = [&](Fabric& fabric) -> Task {
            std::vector<std::uint8_t> bytes(20);
            std::vector<fabric::Pending> under_way;
            for (std::size_t i = 0; i < bytes.size(); ++i) {
                if (fabric.rank() == 0) bytes[i] = static_cast<std::uint8_t>(i);
                const PlaintextBuffer one = PlaintextBuffer(bytes).subspan(i, 1);
                under_way.push_back(fabric.rank() == 0 ? fabric.send_here(1, one)
                                                       : fabric.receive_here(0, one));
            }
            for (auto& one : under_way) co_await one;
            for (std::size_t i = 0; i < bytes.size(); ++i) in_order = in_order && bytes[i] == i;
        };
        EXPECT_EQ(error_of({0, 0}, many, options), "");
        EXPECT_TRUE(in_order) << "seed " << seed;
    }
}

/// Failing spreads: to who receives a sealed message (it does not open), a plain one, or meets at a barrier;
/// and to nobody else.
TEST(Failure, ReachesWhoDependsOnIt) {
    const Report report = run(Topology({0, 0, 1, 2}), {}, [](Fabric& fabric) -> Task {
        const CiphertextBuffer sealed_block = fabric.ciphertext(sealed_bytes(4));
        const PlaintextBuffer plain = fabric.plaintext(4);
        if (fabric.rank() == 0) {
            fabric.seal(sealed_block, plain, {0, 0});
            fabric.fail();
            co_await fabric.send(2, sealed_block);
            co_await fabric.send_here(1, plain);
        }
        if (fabric.rank() == 1) co_await fabric.receive_here(0, plain);
        if (fabric.rank() == 2) {
            co_await fabric.receive(0, sealed_block);
            fabric.open(plain, sealed_block, {0, 0});
        }
    });
    EXPECT_EQ(report.error, "");
    EXPECT_EQ(report.failed, (std::vector<char>{1, 1, 1, 0}));
    const Report met = run(Topology({0, 0, 1}), {}, [](Fabric& fabric) -> Task {
        if (fabric.rank() == 0) fabric.fail();
        co_await fabric.node_barrier();
    });
    EXPECT_EQ(met.failed, (std::vector<char>{1, 1, 0}));
}

}  // namespace
}  // namespace mpisec::fabric::sim
