// Where the workers go on machines that are not this one: several memories, several hardware threads per core.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "engine/placement.hpp"

namespace mpisec::engine {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<unsigned>;

/// `nodes` memories of `cores` cores each, every core with two hardware threads: 0, 1, … are the cores' first ones, and
/// with `alternating` neighbours are on different memories.
std::vector<HardwareThread> machine(unsigned nodes, unsigned cores, bool alternating) {
    std::vector<HardwareThread> all;
    const unsigned total = nodes * cores;
    for (unsigned cpu = 0; cpu < 2 * total; ++cpu)
        all.push_back({cpu, cpu % total, alternating ? cpu % nodes : cpu % total / cores});
    return all;
}

unsigned node_of(const Surroundings& here, unsigned cpu) {
    return here.usable.at(cpu).node;
}

TEST(Machines, ALoneRankHasItsWorkersNearItself) {
    for (bool alternating : {false, true})
        for (unsigned node : {0u, 1u}) {
            const Surroundings here{machine(2, 8, alternating), 0, node};
            const Placement placement = place(here, 7, 1, 0);
            ASSERT_EQ(placement.cores.size(), 15u);
            for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(node_of(here, placement.cores[i]), node);
        }
}

TEST(Machines, TheWorkersOfARankShareAMemory) {
    for (bool alternating : {false, true}) {
        const Surroundings here{machine(2, 8, alternating), 0, 0};
        std::set<unsigned> cores;
        for (unsigned rank = 0; rank < 4; ++rank) {
            const Placement placement = place(here, -1, 4, rank);
            ASSERT_EQ(placement.workers, 3u);
            for (unsigned cpu : placement.cores) {
                EXPECT_EQ(node_of(here, cpu), rank / 2);
                EXPECT_TRUE(cores.insert(here.usable[cpu].core).second);
            }
        }
        EXPECT_EQ(cores.size(), 12u);
    }
}

TEST(Machines, OneWorkerPerCoreUnlessMoreAreAskedFor) {
    const Surroundings here{machine(1, 4, false), 0, 0};
    EXPECT_EQ(place(here, -1, 1, 0).cores, (Numbers{1, 2, 3}));
    EXPECT_EQ(place(here, 2, 1, 0).cores, (Numbers{1, 2, 3}));
    // Their siblings then; but not the sibling of the rank's own core, 4.
    EXPECT_EQ(place(here, 6, 1, 0).cores, (Numbers{1, 2, 3, 5, 6, 7}));
    EXPECT_EQ(place(here, 9, 1, 0).cores, (Numbers{1, 2, 3, 5, 6, 7}));
    EXPECT_EQ(place(here, 9, 1, 0).workers, 9u);
}

TEST(Machines, RanksBoundToCoresOfTheirOwnDoNotShare) {
    Surroundings here{machine(1, 8, false), 8, 0};
    // Two cores, both threads.
    here.usable = {here.usable[4], here.usable[5], here.usable[12], here.usable[13]};
    for (unsigned rank = 0; rank < 4; ++rank) EXPECT_EQ(place(here, -1, 4, rank).cores, Numbers{5});
}

TEST(Machines, NoSpareCoreNoWorker) {
    const Surroundings here{machine(1, 4, false), 0, 0};
    for (unsigned rank = 0; rank < 4; ++rank) EXPECT_EQ(place(here, -1, 4, rank).workers, 0u);
    EXPECT_TRUE(place(here, 3, 4, 0).cores.empty());
}

TEST(Machines, ListsOfNumbers) {
    EXPECT_EQ(numbers_in("0-3,8,10-11\n"), (Numbers{0, 1, 2, 3, 8, 10, 11}));
    EXPECT_EQ(numbers_in("5"), Numbers{5});
    EXPECT_EQ(numbers_in("\n"), Numbers{});
    EXPECT_EQ(numbers_in("1,x"), Numbers{1});
    EXPECT_EQ(numbers_in("3-1"), Numbers{});
    EXPECT_EQ(numbers_in("0-4000000000"), Numbers{});
    EXPECT_EQ(numbers_in("99999999999"), Numbers{});
}

TEST(Machines, TopologyIsReadFromTheKernelsFiles) {
    const fs::path root = fs::temp_directory_path() / ("mpisec-machine-" + std::to_string(getpid()));
    const auto write = [&](const std::string& name, const std::string& text) {
        fs::create_directories((root / name).parent_path());
        std::ofstream(root / name) << text << "\n";
    };
    write("cpu/cpu0/topology/thread_siblings_list", "0,2");
    write("cpu/cpu2/topology/thread_siblings_list", "0,2");
    write("cpu/cpu3/topology/thread_siblings_list", "1,3");
    write("node/online", "0-1");
    write("node/node0/cpulist", "0,2");
    write("node/node1/cpulist", "1,3");
    const std::vector<HardwareThread> all = topology_of({0, 2, 3, 7}, root.string());
    fs::remove_all(root);
    ASSERT_EQ(all.size(), 4u);
    const std::vector<Numbers> expected = {
        {0, 0, 0}, {2, 0, 0}, {3, 1, 1}, {7, 7, 0}};  // nothing says what 7 is
    for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ((Numbers{all[i].cpu, all[i].core, all[i].node}), expected[i]);
}

}  // namespace
}  // namespace mpisec::engine
