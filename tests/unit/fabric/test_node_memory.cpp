// Shared memory of a node among real processes: rooms are the same for all, barriers hold, slots are free
// when all have left, failures are seen, no name is left.
#include "fabric/node_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "fabric/node_arena.hpp"

namespace mpisec::fabric {
namespace {

constexpr unsigned slots = 6;

std::string name_of_test() {
    return "/mpisec-test-" + std::to_string(getpid());
}

/// The file of this process's arena, which children inherit.
int arena_file() {
    static const int descriptor = [] {
        const int file = ::open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
        return NodeArena::format(file, 0) == 0 && NodeArena::open(file, 0) == 0 ? file : -1;
    }();
    return descriptor;
}

/// The descriptor that the arena has of it.
int arena_descriptor() {
    struct stat file {
    }, other{};
    fstat(arena_file(), &file);
    for (int descriptor = arena_file() + 1; descriptor < 1024; ++descriptor)
        if (fstat(descriptor, &other) == 0 && other.st_ino == file.st_ino && other.st_dev == file.st_dev)
            return descriptor;
    return -1;
}

std::size_t bytes_in_use() {
    struct stat status {};
    fstat(arena_file(), &status);
    return static_cast<std::size_t>(status.st_blocks) * 512;
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
void in_processes(unsigned node_peers, const std::function<bool(NodeMemory&, unsigned)>& body) {
    const std::string name = name_of_test();
    ASSERT_GE(arena_file(), 0);
    std::vector<pid_t> children;
    for (unsigned node_peer = 0; node_peer < node_peers; ++node_peer) {
        const pid_t child = fork();
        if (child == 0) {
            auto memory = NodeMemory::attach(name, node_peers, slots);
            _exit(memory && body(*memory, node_peer) ? 0 : 1);
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
    constexpr unsigned node_peers = 3;
    in_processes(node_peers, [](NodeMemory& memory, unsigned node_peer) {
        for (unsigned use = 0; use < 200; ++use) {
            NodeMemory::Slot& slot = memory.slot(use % slots);
            const std::uint64_t turn = slot.take_turn();
            wait_until([&] { return slot.free(turn); });
            slot.enter();
            const std::size_t part = 1 + (use * 7919) % (use % 17 == 0 ? 300000 : 3000);
            auto first = slot.room(node_peers * part);
            auto second = slot.room(use % 5);
            if (!first || !second) return false;
            fill(*first, node_peer * part, part, static_cast<std::uint8_t>(use + node_peer));
            const std::uint64_t barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            for (unsigned other = 0; other < node_peers; ++other)
                for (std::size_t at : {other * part, other * part + part - 1})
                    if ((*first)[at] != static_cast<std::uint8_t>(use + other)) return false;
            if (slot.failed()) return false;
            slot.leave();
        }
        return true;
    });
}

TEST(NodeMemory, FailureIsOfOneCollective) {
    in_processes(2, [](NodeMemory& memory, unsigned node_peer) {
        NodeMemory::Slot& slot = memory.slot(0);
        for (unsigned use = 0; use < 50; ++use) {
            const std::uint64_t turn = slot.take_turn();
            wait_until([&] { return slot.free(turn); });
            slot.enter();
            if (node_peer == 1 && use % 3 == 0) slot.fail();
            const std::uint64_t barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            if (slot.failed() != (use % 3 == 0)) return false;
            slot.leave();
        }
        return true;
    });
}

/// One node peer cannot have some room, the other can: that collective fails, and the next ones share again.
TEST(NodeMemory, RoomsAgreeAgainAfterOneMateHadNone) {
    in_processes(2, [](NodeMemory& memory, unsigned node_peer) {
        NodeMemory::Slot& slot = memory.slot(0);
        const int others = ::open("/dev/null", O_RDWR), arena = arena_descriptor();
        auto use = [&](bool starved, std::size_t bytes) {
            const std::uint64_t turn = slot.take_turn();
            wait_until([&] { return slot.free(turn); });
            slot.enter();
            const int saved = starved ? fcntl(arena, F_DUPFD_CLOEXEC, 0) : -1;
            if (starved) dup2(others, arena);
            auto room = slot.room(bytes);
            if (starved) dup2(saved, arena);
            if (starved) close(saved);
            if (room) (*room)[node_peer] = static_cast<std::uint8_t>(bytes + node_peer);
            if (!room) slot.fail();
            std::uint64_t barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            const bool failed = slot.failed();
            const bool shared =
                room && (*room)[1 - node_peer] == static_cast<std::uint8_t>(bytes + 1 - node_peer);
            barrier = slot.come();
            wait_until([&] { return slot.met(barrier); });
            slot.leave();
            return room ? failed || shared : starved && failed;
        };
        bool good = use(false, 100'000);
        for (std::size_t i = 0; i < 20; ++i)
            good = use(node_peer == 1 && i % 4 == 1, 200'000 * (i + 1)) && good;
        return good;
    });
}

TEST(NodeMemory, WhatCanNotBeHadIsSaid) {
    auto memory = NodeMemory::attach(name_of_test(), 1, slots);
    ASSERT_TRUE(memory);
    memory->slot(0).enter();
    auto room = memory->slot(0).room(std::size_t{1} << 50);
    ASSERT_FALSE(room);
    EXPECT_NE(room.error().message.find("/dev/shm"), std::string::npos);
    EXPECT_FALSE(left_over(name_of_test()));
}

/// A job that was killed while its ranks found each other leaves a name; the next job removes it, but neither
/// that of a living maker nor that of others.
TEST(NodeMemory, NamesOfKilledMakersAreRemoved) {
    const std::string name = name_of_test(), abandoned = name + "-abandoned", live = name + "-live";
    close(shm_open(abandoned.c_str(), O_RDWR | O_CREAT, 0600));
    const std::string other = "/other" + name.substr(1);
    close(shm_open(other.c_str(), O_RDWR | O_CREAT, 0600));
    const int maker = shm_open(live.c_str(), O_RDWR | O_CREAT, 0600);
    flock(maker, LOCK_SH);
    remove_abandoned_names();
    EXPECT_TRUE(left_over(abandoned)) << "it is young: its maker may be about to lock it";
    remove_abandoned_names(std::chrono::seconds(0));
    EXPECT_FALSE(left_over(abandoned));
    EXPECT_TRUE(left_over(live));
    EXPECT_TRUE(left_over(other));
    close(maker);
    shm_unlink(live.c_str());
    shm_unlink(other.c_str());
}

/// One that is killed before its peer has come leaves no name, and the others go on sharing.
TEST(NodeMemory, NothingIsLeftOfAProcessThatIsKilled) {
    ASSERT_GE(arena_file(), 0);
    const std::string name = name_of_test();
    for (int round = 0; round < 20; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            for (unsigned i = 0;; ++i) {  // killed somewhere in it, perhaps while it holds the table's lock
                auto waits =
                    SharedSegment::attach(name + "-dies-" + std::to_string(round * 1000 + i % 1000), 100, 2);
                auto alone = SharedSegment::attach(name + "-alone", 100, 1);
            }
        }
        ASSERT_GT(child, 0);
        usleep(3000);
        EXPECT_FALSE(left_over(name));
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    EXPECT_FALSE(left_over(name));
    in_processes(2, [](NodeMemory& memory, unsigned node_peer) {
        memory.slot(0).enter();
        auto room = memory.slot(0).room(64);
        if (!room) return false;
        (*room)[node_peer] = static_cast<std::uint8_t>(1 + node_peer);
        const std::uint64_t barrier = memory.slot(0).come();
        wait_until([&] { return memory.slot(0).met(barrier); });
        return (*room)[1 - node_peer] == 2 - node_peer;
    });
}

TEST(NodeMemory, MemoryIsGivenBackAndZeroedWhenAllHaveLeft) {
    ASSERT_GE(arena_file(), 0);
    const std::string name = name_of_test();
    struct stat before {
    }, after{};
    std::size_t in_use = 0;
    for (int round = 0; round < 50; ++round) {
        {
            auto one = SharedSegment::attach(name, 1 << 20, 2);
            auto two = SharedSegment::attach(name, 1 << 20, 2);
            ASSERT_TRUE(one && two);
            EXPECT_EQ(one->bytes()[12345], 0);
            one->bytes()[12345] = 1;
            EXPECT_EQ(two->bytes()[12345], 1);
        }
        if (round == 0) {
            in_use = bytes_in_use();
            fstat(arena_file(), &before);
        }
    }
    fstat(arena_file(), &after);
    EXPECT_EQ(bytes_in_use(), in_use);
    EXPECT_EQ(before.st_size, after.st_size) << "what all have left is used again";
}

/// A failed collective forgets what only some could have.
TEST(NodeMemory, WhatIsForgottenIsFreed) {
    ASSERT_GE(arena_file(), 0);
    const std::string name = name_of_test();
    const std::size_t in_use = bytes_in_use();
    {
        auto one = SharedSegment::attach(name, 1 << 20, 2);
        ASSERT_TRUE(one);
        one->forget(name);
        auto other = SharedSegment::attach(name, 1 << 20, 1);
        ASSERT_TRUE(other);
        one->bytes()[0] = 1;
        EXPECT_EQ(other->bytes()[0], 0) << "that is another one";
    }
    EXPECT_LE(bytes_in_use(), in_use + 4096);
}

TEST(NodeMemory, ADescriptorThatTheProgramHasClosedIsAnError) {
    ASSERT_GE(arena_file(), 0);
    const pid_t child = fork();
    if (child == 0) {
        for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
        const int others = ::open("/dev/null", O_RDWR);
        for (int i = 0; i < 200; ++i) dup(others);
        auto none = SharedSegment::attach(name_of_test(), 100, 1);
        _exit(!none && none.error().message.find("descriptor") != std::string::npos ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(NodeMemory, IsThereForAProcessOfFewDescriptors) {
    const pid_t child = fork();
    if (child == 0) {
        const int file = ::open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 64;
        setrlimit(RLIMIT_NOFILE, &limit);
        _exit(NodeArena::format(file, 0) == 0 && NodeArena::open(file, 0) == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace mpisec::fabric
