#include "shim/p2p/first_part_choice.hpp"

#include <gtest/gtest.h>

namespace mpisec::shim {
namespace {

/// Sends so many messages, which take as long as their cut says; how many of them had the longer first part.
int send(FirstPartTrial& trial, int messages, float with_short, float with_long) {
    int longs = 0;
    for (int i = 0; i < messages; ++i) {
        const bool is_long = trial.takes_long();
        longs += is_long;
        trial.note(is_long, is_long ? with_long : with_short);
    }
    return longs;
}

TEST(FirstPartTrial, FindsTheFasterWay) {
    FirstPartTrial trial;
    send(trial, 10, 1.2F, 1.0F);
    EXPECT_GE(send(trial, 320, 1.2F, 1.0F), 290);
    FirstPartTrial other;
    send(other, 10, 1.0F, 1.2F);
    EXPECT_LE(send(other, 320, 1.0F, 1.2F), 30);
}

TEST(FirstPartTrial, NeedsNoTimesButThoseThatItWants) {
    FirstPartTrial trial;
    int wanted = 0;
    for (int i = 0; i < 480; ++i) {
        const bool wants = trial.wants_time(), is_long = trial.takes_long();
        wanted += wants;
        if (wants) trial.note(is_long, is_long ? 1.0F : 1.2F);
    }
    EXPECT_TRUE(trial.long_wins());
    EXPECT_EQ(wanted, 60);
}

TEST(FirstPartTrial, FollowsWhenTheFasterWayChanges) {
    FirstPartTrial trial;
    send(trial, 100, 1.2F, 1.0F);
    send(trial, 60, 3.0F, 4.0F);  // the link is slower now, for both
    EXPECT_LE(send(trial, 320, 3.0F, 4.0F), 30);
    send(trial, 60, 1.2F, 1.0F);
    EXPECT_GE(send(trial, 320, 1.2F, 1.0F), 290);
}

TEST(FirstPartTrial, KeepsTheShortOneUnlessTheOtherIsClearlyFaster) {
    FirstPartTrial trial;
    EXPECT_FALSE(trial.takes_long());
    send(trial, 100, 1.0F, 0.98F);
    EXPECT_LE(send(trial, 320, 1.0F, 0.98F), 30);
}

/// One after the other, of which one number takes a hundred times as long as the others of its cut.
int send_one_late(FirstPartTrial& trial, int messages, int late) {
    int longs = 0;
    for (int i = 0; i < messages; ++i) {
        const bool is_long = trial.takes_long();
        longs += is_long;
        trial.note(is_long, (is_long ? 1.2F : 1.0F) * (i == late ? 100 : 1));
    }
    return longs;
}

TEST(FirstPartTrial, NoSingleLateReceiverDecides) {
    for (int late = 0; late < 100; ++late) {
        FirstPartTrial trial;
        EXPECT_LE(send_one_late(trial, 200, late), 15) << late;
    }
}

TEST(FirstPartTrial, AMachineThatGetsSlowerDecidesNothing) {
    FirstPartTrial trial;
    send(trial, 20, 1.0F, 1.05F);
    int longs = 0;
    for (int i = 0; i < 20; ++i)
        longs += send(trial, 20, 1.0F + 0.2F * static_cast<float>(i),
                      1.05F * (1.0F + 0.2F * static_cast<float>(i)));
    EXPECT_LE(longs, 30);
}

TEST(FirstPartChoice, KnowsWhatIsAlone) {
    FirstPartChoice choice;
    const std::uint64_t first = choice.begin();
    EXPECT_TRUE(choice.is_alone(first));
    const std::uint64_t second = choice.begin();
    EXPECT_FALSE(choice.is_alone(second));
    EXPECT_FALSE(choice.is_alone(first)) << "another has begun meanwhile";
    choice.end();
    choice.end();
    EXPECT_TRUE(choice.is_alone(choice.begin()));
}

TEST(FirstPartChoice, HasATrialForEachMagnitude) {
    FirstPartChoice choice;
    EXPECT_EQ(&choice.of_length(1), &choice.of_length((1 << 18) - 1));
    EXPECT_NE(&choice.of_length((1 << 18) - 1), &choice.of_length(1 << 18));
    EXPECT_EQ(&choice.of_length(1 << 18), &choice.of_length((1 << 19) - 1));
    EXPECT_NE(&choice.of_length(1 << 22), &choice.of_length(1 << 23));
    EXPECT_EQ(&choice.of_length(1 << 23), &choice.of_length(std::uint64_t{1} << 40));
}

}  // namespace
}  // namespace mpisec::shim
