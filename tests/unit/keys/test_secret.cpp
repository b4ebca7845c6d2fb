// S5: key memory is locked, left out of core dumps and of children, and wiped.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "keys/schedule.hpp"
#include "keys/secret.hpp"

namespace mpisec::keys {
namespace {

// The sanitizers' runtimes turn mlock into nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool mlock_works = false;
#else
constexpr bool mlock_works = true;
#endif

bool all(const std::uint8_t* bytes, std::uint8_t value) {
    return std::all_of(bytes, bytes + secret_bytes, [value](std::uint8_t byte) { return byte == value; });
}

Secret filled(std::uint8_t value) {
    Secret secret;
    std::memset(secret.data(), value, secret_bytes);
    return secret;
}

TEST(Secret, IsZeroAtFirst) {
    EXPECT_TRUE(all(Secret().data(), 0));
}

TEST(Secret, IsWipedWhenFreed) {
    const std::uint8_t* where;
    {
        Secret secret = filled(0xA5);
        where = secret.data();
        ASSERT_TRUE(all(where, 0xA5));
    }
    EXPECT_TRUE(all(where, 0));  // the slab stays mapped
}

TEST(Secret, AssignmentWipesTheOldValue) {
    const std::uint8_t* where;
    Secret kept = filled(0x11);
    where = kept.data();
    kept = filled(0x22);
    EXPECT_TRUE(all(kept.data(), 0x22));
    EXPECT_TRUE(all(where, 0));
}

TEST(Secret, MovesWithoutACopy) {
    Secret from = filled(7);
    const std::uint8_t* where = from.data();
    Secret to = std::move(from);
    EXPECT_EQ(to.data(), where);
    // NOLINTNEXTLINE(bugprone-use-after-move,clang-analyzer-cplusplus.Move): that it is empty then is what is tested
    EXPECT_EQ(from.data(), nullptr);
}

TEST(Secret, RandomOnesDiffer) {
    EXPECT_NE(std::memcmp(Secret::random().data(), Secret::random().data(), secret_bytes), 0);
}

TEST(Secret, SlotsAreReusedAndNeverShared) {
    std::vector<Secret> many;
    const auto fill = [&] {
        std::set<const std::uint8_t*> where;
        for (int i = 0; i < 3000; ++i)
            where.insert(many.emplace_back(filled(static_cast<std::uint8_t>(i))).data());
        return where;
    };
    const auto where = fill();
    EXPECT_EQ(where.size(), 3000U);
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(all(many[i].data(), static_cast<std::uint8_t>(i)));
    many.clear();
    EXPECT_EQ(fill(), where);
}

/// The VmFlags of the mapping that holds `address` (proc(5)).
std::string mapping_flags(const void* address) {
    std::ifstream smaps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(smaps, line);) {
        unsigned long begin, end;
        // NOLINTNEXTLINE(cert-err34-c): the kernel writes addresses
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
            auto at = reinterpret_cast<unsigned long>(address);
            here = begin <= at && at < end;
        } else if (here && line.rfind("VmFlags:", 0) == 0) {
            return line + " ";
        }
    }
    return "";
}

TEST(Secret, PagesAreLockedAndLeftOutOfDumps) {
    Secret secret;
    std::string flags = mapping_flags(secret.data());
    EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;  // do not dump
    EXPECT_NE(flags.find(" wf "), std::string::npos) << flags;  // wipe on fork
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (mlock_works && (geteuid() == 0 || limit.rlim_cur >= 1 << 20)) {
        EXPECT_NE(flags.find(" lo "), std::string::npos) << flags;
    }
}

/// The exit code of `body` in a child process.
template <class Body>
int in_child(Body body) {
    pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Secret, ChildrenSeeZeros) {
    Secret secret = filled(0x5A);
    EXPECT_EQ(in_child([&] { return all(secret.data(), 0) ? 0 : 1; }), 0);
    EXPECT_TRUE(all(secret.data(), 0x5A));
}

TEST(Secret, ChildrenKnowThatItIsWiped) {
    Secret secret = filled(0x5A);
    EXPECT_TRUE(secret.alive());
    EXPECT_EQ(in_child([&] { return secret.alive() ? 1 : 0; }), 0);
    EXPECT_EQ(in_child([] { return Secret().alive() ? 1 : 0; }), 1) << "the child's own";
    std::vector<Secret> many(1000);  // several times the slab grows
    for (const Secret& one : many) ASSERT_TRUE(one.alive() && all(one.data(), 0));
    many.front().data()[0] = 1;
    Secret moved = std::move(many.front());
    EXPECT_TRUE(moved.alive());
    EXPECT_FALSE(many.front().alive());
}

// S4: otherwise two children, and anybody, would derive the same keys.
TEST(Secret, NothingIsDerivedFromAWipedOne) {
    Secret secret = filled(0x5A);
    std::uint8_t out[secret_bytes], nonce[12] = {}, context[16] = {};
    EXPECT_EQ(in_child([&] { return static_cast<int>(pair_secret(secret, 0, 1, 0).aead.data()[0] & 0) + 7; }),
              1);
    EXPECT_EQ(in_child([&] { return message_key(secret, 1, out), 7; }), 1);
    EXPECT_EQ(in_child([&] { return collective_secret(secret, context, 0), 7; }), 1);
    EXPECT_EQ(in_child([&] { return sealed_block_key(secret, nonce, out), 7; }), 1);
    EXPECT_EQ(in_child([&] { return partitioned_key(secret, context, 1, out), 7; }), 1);
    message_key(secret, 1, out);  // the parent goes on
}

TEST(Secret, MissingRightToLockIsTolerated) {
    if (!mlock_works) GTEST_SKIP() << "a sanitizer replaces mlock";
    EXPECT_EQ(in_child([] {
                  rlimit none{0, 0};
                  if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return 2;
                  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
                      return 3;                     // root may always lock
                  std::vector<Secret> many(20000);  // more than the slabs there are
                  return mapping_flags(many.back().data()).find(" lo ") == std::string::npos ? 0 : 4;
              }),
              0);
}

}  // namespace
}  // namespace mpisec::keys
