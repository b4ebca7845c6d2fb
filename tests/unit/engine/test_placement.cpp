// Which cores the workers get, held against hwloc's view of this machine.
#include <gtest/gtest.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "engine/engine.hpp"

namespace mpisec::engine {
namespace {

/// Index of the core that holds hardware thread `cpu`, as hwloc sees it; and how many cores this process may
/// use.
class Cores {
  public:
    Cores() {
        hwloc_topology_init(&topology_);
        hwloc_topology_load(topology_);
    }
    ~Cores() { hwloc_topology_destroy(topology_); }
    std::size_t allowed() const {
        hwloc_bitmap_t mine = hwloc_bitmap_alloc();
        hwloc_get_cpubind(topology_, mine, HWLOC_CPUBIND_THREAD);
        std::size_t count = 0;
        for (hwloc_obj_t core = nullptr;
             (core = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_CORE, core));)
            count += hwloc_bitmap_intersects(core->cpuset, mine) ? 1 : 0;
        hwloc_bitmap_free(mine);
        return count;
    }
    unsigned of(unsigned cpu) const {
        hwloc_obj_t unit = hwloc_get_pu_obj_by_os_index(topology_, cpu);
        return unit ? hwloc_get_ancestor_obj_by_type(topology_, HWLOC_OBJ_CORE, unit)->logical_index : ~0u;
    }

  private:
    hwloc_topology_t topology_;
};

TEST(Placement, ZeroMeansNone) {
    const Placement placement = place_workers(0, 1, 0);
    EXPECT_EQ(placement.workers, 0u);
    EXPECT_TRUE(placement.cores.empty());
}

TEST(Placement, OneRankTakesTheSpareCores) {
    const std::size_t allowed = Cores().allowed();
    const Placement placement = place_workers(-1, 1, 0);
    EXPECT_EQ(placement.workers, std::min<std::size_t>(4, allowed - 1));
    EXPECT_EQ(placement.cores.size(), placement.workers);
}

TEST(Placement, RanksThatNeedEveryCoreLeaveNone) {
    const auto allowed = static_cast<unsigned>(Cores().allowed());
    for (unsigned rank = 0; rank < allowed; ++rank) {
        EXPECT_EQ(place_workers(-1, allowed, rank).workers, 0u);
        EXPECT_EQ(place_workers(-1, 2 * allowed, rank).workers, 0u);
    }
}

TEST(Placement, RanksOfANodeGetDifferentCores) {
    Cores cores;
    const auto allowed = static_cast<unsigned>(cores.allowed());
    for (unsigned ranks = 1; ranks <= allowed; ++ranks) {
        std::set<unsigned> taken;
        std::size_t workers = 0;
        for (unsigned rank = 0; rank < ranks; ++rank) {
            const Placement placement = place_workers(-1, ranks, rank);
            workers += placement.workers;
            for (unsigned cpu : placement.cores)
                EXPECT_TRUE(taken.insert(cores.of(cpu)).second) << "core of cpu " << cpu;
        }
        EXPECT_LE(workers, allowed - ranks);
        if (allowed - ranks <= 4) {
            EXPECT_EQ(workers, allowed - ranks) << "all spare cores are used";
        }
    }
}

TEST(Placement, ARankBoundToOneCoreHasNoSpareOne) {
    Placement placement{99, {}};
    bool bound = false;
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        bound = sched_setaffinity(0, sizeof one, &one) == 0;
        placement = place_workers(-1, 1, 0);
    }).join();
    if (!bound) GTEST_SKIP() << "this machine does not let a thread be bound";
    EXPECT_EQ(placement.workers, 0u);
}

TEST(Placement, TheSettingDecidesTheNumber) {
    for (int setting : {1, 3, 7}) {
        EXPECT_EQ(place_workers(setting, 1, 0).workers, static_cast<unsigned>(setting));
        EXPECT_EQ(place_workers(setting, 1000, 5).workers, static_cast<unsigned>(setting));
    }
}

TEST(Placement, TheCallersBindingStays) {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    place_workers(-1, 1, 0);
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace mpisec::engine
