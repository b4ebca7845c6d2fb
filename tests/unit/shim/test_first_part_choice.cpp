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

TEST(FirstPartTrial, FollowsWhenTheFasterWayChanges) {
    FirstPartTrial trial;
    send(trial, 100, 1.2F, 1.0F);
    send(trial, 300, 3.0F, 4.0F);  // the link is slower now, for both
    EXPECT_LE(send(trial, 320, 3.0F, 4.0F), 30);
    send(trial, 300, 1.2F, 1.0F);
    EXPECT_GE(send(trial, 320, 1.2F, 1.0F), 290);
}

TEST(FirstPartTrial, KeepsTheShortOneUnlessTheOtherIsClearlyFaster) {
    FirstPartTrial trial;
    EXPECT_FALSE(trial.takes_long());
    send(trial, 100, 1.0F, 0.98F);
    EXPECT_LE(send(trial, 320, 1.0F, 0.98F), 30);
}

TEST(FirstPartTrial, AColdMessageAndALateReceiverDecideNothing) {
    FirstPartTrial trial;
    trial.note(false, 50);  // the first of its kind
    send(trial, 50, 1.0F, 1.2F);
    trial.note(false, 1.0F);
    trial.note(false, 1000);
    EXPECT_LE(send(trial, 320, 1.0F, 1.2F), 50);
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
