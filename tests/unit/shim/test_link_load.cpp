#include "shim/p2p/link_load.hpp"

#include <gtest/gtest.h>

namespace mpisec::shim {
namespace {

constexpr float fast = 5, slow = 1.2F;  // bytes per ns

LinkLoad after(int messages, float busy, float rate, LinkLoad load = {}) {
    for (int i = 0; i < messages; ++i) load.note(busy, rate);
    return load;
}

TEST(LinkLoad, OnlyAFastLinkThatKeepsTheCoreBusyFillsIt) {
    EXPECT_FALSE(LinkLoad{}.fills_core) << "before anything is known, messages travel in parts";
    EXPECT_TRUE(after(20, 0.95F, fast).fills_core);
    EXPECT_FALSE(after(20, 0.95F, slow).fills_core);
    EXPECT_FALSE(after(20, 0.1F, fast).fills_core) << "a network card does the work";
}

TEST(LinkLoad, OneMessageChangesNothing) {
    EXPECT_FALSE(after(1, 1, fast).fills_core);
    const LinkLoad filled = after(20, 0.95F, fast);
    EXPECT_TRUE(after(1, 0.95F, slow, filled).fills_core);
    EXPECT_FALSE(after(20, 0.95F, slow, filled).fills_core);
    EXPECT_FALSE(after(20, 0.1F, fast, filled).fills_core);
}

TEST(LinkLoad, NowAndThenAMessageIsCutToTell) {
    LinkLoad load = after(20, 0.95F, fast);
    int cut = 0;
    for (int i = 0; i < 640; ++i) cut += !load.prefers_long_first(true);
    EXPECT_EQ(cut, 10);
    for (int i = 0; i < 640; ++i) EXPECT_TRUE(load.prefers_long_first(false)) << "those in parts tell anyway";
    LinkLoad unknown;
    EXPECT_FALSE(unknown.prefers_long_first(true));
}

TEST(LoadMeter, TellsWaitingFromWork) {
    LoadMeter meter(1000);
    meter.pass(1000, 61'000);  // handed over: 60 µs in the kernel
    for (std::uint64_t now = 61'000; now < 101'000; now += 1000) meter.pass(now + 500, now + 1000);
    LinkLoad load;
    meter.note(load, 400'000);
    EXPECT_NEAR(load.busy, 0.6 / 4, 0.001);
    EXPECT_NEAR(load.rate, 4.0 / 4, 0.001);
    LinkLoad none;
    LoadMeter(5).note(none, 1);
    EXPECT_EQ(none.rate, 0);
}

}  // namespace
}  // namespace mpisec::shim
