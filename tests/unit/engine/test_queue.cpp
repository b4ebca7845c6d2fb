// The queue of the engine's tasks: oldest first, each to one thread, none lost.
#include "engine/queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "engine/engine.hpp"

namespace mpisec::engine {
namespace {

constexpr std::size_t everything = 1 << 30;

TEST(TaskQueue, OldestFirst) {
    TaskQueue queue;
    std::vector<SegmentTask> tasks(3);
    for (SegmentTask& task : tasks) ASSERT_TRUE(queue.push(&task, 1));
    EXPECT_EQ(queue.size(), 3u);
    SegmentTask* taken[8] = {};
    ASSERT_EQ(queue.take(taken, 1, everything), 1u);
    EXPECT_EQ(taken[0], &tasks[0]);
    ASSERT_EQ(queue.take(taken, 8, everything), 2u);
    EXPECT_EQ(taken[0], &tasks[1]);
    EXPECT_EQ(taken[1], &tasks[2]);
    EXPECT_EQ(queue.take(taken, 8, everything), 0u);
}

TEST(TaskQueue, SmallOnesTogetherLargeOnesAlone) {
    TaskQueue queue;
    SegmentTask task;
    for (std::size_t bytes : {10'000u, 10'000u, 10'000u, 50'000u, 100u, 0u})
        ASSERT_TRUE(queue.push(&task, bytes));
    SegmentTask* taken[8];
    EXPECT_EQ(queue.take(taken, 8, 25'000), 2u);
    EXPECT_EQ(queue.take(taken, 8, 25'000), 1u);
    EXPECT_EQ(queue.take(taken, 8, 25'000), 1u) << "larger than all that may be taken";
    EXPECT_EQ(queue.take(taken, 8, 25'000), 2u);
}

TEST(TaskQueue, TellsWhenItIsFull) {
    TaskQueue queue;
    SegmentTask task;
    std::size_t room = 0;
    while (queue.push(&task, 1)) ++room;
    EXPECT_GE(room, 256u);
    SegmentTask* taken[4];
    ASSERT_EQ(queue.take(taken, 4, everything), 4u);
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.push(&task, 1));
    EXPECT_FALSE(queue.push(&task, 1));
}

TEST(TaskQueue, ThreadsGetEachTaskOnceAndInOrder) {
    TaskQueue queue;
    std::vector<SegmentTask> tasks(100'000);
    std::vector<std::atomic<int>> times(tasks.size());
    std::atomic<std::size_t> left{tasks.size()};
    std::atomic<bool> in_order{true};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            SegmentTask* taken[8];
            SegmentTask* last = nullptr;
            while (left > 0)
                for (std::size_t n = queue.take(taken, 8, everything), j = 0; j < n; ++j, --left) {
                    if (last && taken[j] <= last) in_order = false;
                    last = taken[j];
                    ++times[static_cast<std::size_t>(taken[j] - tasks.data())];
                }
        });
    for (SegmentTask& task : tasks)
        while (!queue.push(&task, 1)) std::this_thread::yield();
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(in_order);
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& count) { return count == 1; }));
}

}  // namespace
}  // namespace mpisec::engine
