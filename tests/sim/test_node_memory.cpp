// Shared memory of a node among real processes: rooms are the same for all, barriers hold, slots are free
// when all have left, failures are seen, no name is left.
#include "fabric/node_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

namespace mpisec::fabric {
namespace {

std::string name_of_test() {
    return "/mpisec-test-" + std::to_string(getpid());
}

bool left_over(const std::string& name) {
    DIR* directory = opendir("/dev/shm");
    bool found = false;
    while (const dirent* entry = directory ? readdir(directory) : nullptr)
        found = found || std::strstr(entry->d_name, name.c_str() + 1);
    if (directory) closedir(directory);
    return found;
}

void wait_until(const std::function<bool()>& condition) {
    while (!condition()) sched_yield();
}

/// `body` in that many processes; false from one of them fails the test.
void in_processes(unsigned mates, const std::function<bool(NodeMemory&, unsigned)>& body) {
    const std::string name = name_of_test();
    std::vector<pid_t> children;
    for (unsigned mate = 0; mate < mates; ++mate) {
        const pid_t child = fork();
        if (child == 0) {
            auto memory = NodeMemory::attach(name, mates);
            _exit(memory && body(*memory, mate) ? 0 : 1);
        }
        children.push_back(child);
    }
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT_FALSE(left_over(name));
}

bool fill(std::span<std::uint8_t> room, std::size_t begin, std::size_t n, std::uint8_t value) {
    std::memset(room.data() + begin, value, n);
    return true;
}

TEST(NodeMemory, RoomsAreSharedAndGrow) {
    constexpr unsigned mates = 3;
    in_processes(mates, [](NodeMemory& memory, unsigned mate) {
        for (unsigned use = 0; use < 200; ++use) {
            NodeMemory::Slot& slot = memory.slot(use % NodeMemory::slots);
            wait_until([&] { return slot.free(); });
            slot.enter();
            const std::size_t part = 1 + (use * 7919) % (use % 17 == 0 ? 300000 : 3000);
            auto first = slot.room(mates * part);
            auto second = slot.room(use % 5);
            if (!first || !second) return false;
            fill(*first, mate * part, part, static_cast<std::uint8_t>(use + mate));
            const std::uint64_t barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            for (unsigned other = 0; other < mates; ++other)
                for (std::size_t at : {other * part, other * part + part - 1})
                    if ((*first)[at] != static_cast<std::uint8_t>(use + other)) return false;
            if (slot.failed()) return false;
            slot.leave();
        }
        return true;
    });
}

TEST(NodeMemory, FailureIsOfOneCollective) {
    in_processes(2, [](NodeMemory& memory, unsigned mate) {
        NodeMemory::Slot& slot = memory.slot(0);
        for (unsigned use = 0; use < 50; ++use) {
            wait_until([&] { return slot.free(); });
            slot.enter();
            if (mate == 1 && use % 3 == 0) slot.fail();
            const std::uint64_t barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            if (slot.failed() != (use % 3 == 0)) return false;
            slot.leave();
        }
        return true;
    });
}

/// One mate can not have some room, the other can: that collective fails, and the next ones share again.
TEST(NodeMemory, RoomsAgreeAgainAfterOneMateHadNone) {
    in_processes(2, [](NodeMemory& memory, unsigned mate) {
        NodeMemory::Slot& slot = memory.slot(0);
        auto use = [&](bool starved, std::size_t bytes) {
            wait_until([&] { return slot.free(); });
            slot.enter();
            rlimit before{}, none{};
            getrlimit(RLIMIT_NOFILE, &before);
            none.rlim_max = before.rlim_max;
            if (starved) setrlimit(RLIMIT_NOFILE, &none);
            auto room = slot.room(bytes);
            if (starved) setrlimit(RLIMIT_NOFILE, &before);
            if (room) (*room)[mate] = static_cast<std::uint8_t>(bytes + mate);
            if (!room) slot.fail();
            std::uint64_t barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            const bool failed = slot.failed();
            const bool shared = room && (*room)[1 - mate] == static_cast<std::uint8_t>(bytes + 1 - mate);
            barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            slot.leave();
            return room ? failed || shared : starved && failed;
        };
        bool good = use(false, 100'000);
        for (std::size_t i = 0; i < 20; ++i) good = use(mate == 1 && i % 4 == 1, 200'000 * (i + 1)) && good;
        return good;
    });
}

TEST(NodeMemory, WhatCanNotBeHadIsSaid) {
    auto memory = NodeMemory::attach(name_of_test(), 1);
    ASSERT_TRUE(memory);
    memory->slot(0).enter();
    auto room = memory->slot(0).room(std::size_t{1} << 50);
    ASSERT_FALSE(room);
    EXPECT_NE(room.error().message.find("/dev/shm"), std::string::npos);
    EXPECT_FALSE(left_over(name_of_test()));
}

/// A rank that was killed leaves a name; the next job removes it, but neither that of a living maker nor that
/// of others.
TEST(NodeMemory, NamesOfKilledMakersAreRemoved) {
    const std::string name = name_of_test(), abandoned = name + "-abandoned", live = name + "-live";
    const pid_t maker = fork();
    if (maker == 0) {
        auto never_complete = SharedSegment::attach(abandoned, 100, 2);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(maker, &status, 0);
    const std::string other = "/other" + name.substr(1);
    close(shm_open(other.c_str(), O_RDWR | O_CREAT, 0600));
    {
        auto waits_for_mate = SharedSegment::attach(live, 100, 2);
        ASSERT_TRUE(waits_for_mate);
        remove_abandoned_names();
        EXPECT_TRUE(left_over(abandoned)) << "it is young: its maker may be about to lock it";
        remove_abandoned_names(std::chrono::seconds(0));
        EXPECT_FALSE(left_over(abandoned));
        EXPECT_TRUE(left_over(live));
        auto mate = SharedSegment::attach(live, 100, 2);
        ASSERT_TRUE(mate);
        EXPECT_FALSE(left_over(live));
    }
    EXPECT_TRUE(left_over(other));
    shm_unlink(other.c_str());
}

}  // namespace
}  // namespace mpisec::fabric
