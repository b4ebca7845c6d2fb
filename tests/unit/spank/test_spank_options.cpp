// What the plug-in for Slurm does for a step, by the words of plugstack.conf and the user's wish.
extern "C" {
#include "spank/options.h"
}

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

mpisec_site site_of(std::vector<std::string> words) {
    mpisec_site site;
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    EXPECT_EQ(mpisec_read_site(&site, static_cast<int>(pointers.size()), pointers.data()), nullptr);
    return site;
}

/// `protect` and `require` point into these words, as into Slurm's own.
char protect_some[] = "protect=open,debug", require_some[] = "require=secure", protect_all[] = "protect=all";

mpisec_duty duty(std::vector<char*> words, mpisec_wish wish, const char* partition) {
    mpisec_site site;
    EXPECT_EQ(mpisec_read_site(&site, static_cast<int>(words.size()), words.data()), nullptr);
    return mpisec_duty_of(&site, wish, partition);
}

TEST(SpankOptions, WordsOfPlugstackConf) {
    EXPECT_STREQ(site_of({}).mpisec, "mpisec");
    const mpisec_site site = site_of({"mpisec=/opt/bin/mpisec", "key_file=/run/%j/key"});
    EXPECT_STREQ(site.mpisec, "/opt/bin/mpisec");
    EXPECT_STREQ(site.key_file, "/run/%j/key");
    mpisec_site wrong;
    for (std::string word : {"requires=a", "require", "off", ""}) {
        char* words[] = {word.data()};
        EXPECT_STREQ(mpisec_read_site(&wrong, 1, words), word.c_str());
    }
    std::string long_one = "mpisec=" + std::string(mpisec_path_bytes, 'x');
    char* words[] = {long_one.data()};
    EXPECT_NE(mpisec_read_site(&wrong, 1, words), nullptr);
}

TEST(SpankOptions, Wishes) {
    mpisec_wish wish = mpisec_unsaid;
    EXPECT_EQ(mpisec_read_wish(&wish, nullptr), 0);
    EXPECT_EQ(wish, mpisec_on);
    EXPECT_EQ(mpisec_read_wish(&wish, "off"), 0);
    EXPECT_EQ(wish, mpisec_off);
    EXPECT_EQ(mpisec_read_wish(&wish, "on"), 0);
    EXPECT_EQ(wish, mpisec_on);
    EXPECT_EQ(mpisec_read_wish(&wish, "of"), -1);
}

TEST(SpankOptions, NothingIsDoneUnlessSomebodyAsks) {
    EXPECT_EQ(duty({}, mpisec_unsaid, "open"), mpisec_leave);
    EXPECT_EQ(duty({}, mpisec_on, "open"), mpisec_protect);
    EXPECT_EQ(duty({}, mpisec_off, "open"), mpisec_leave);
}

TEST(SpankOptions, ProtectedPartitionsCanBeLeft) {
    EXPECT_EQ(duty({protect_some}, mpisec_unsaid, "debug"), mpisec_protect);
    EXPECT_EQ(duty({protect_some}, mpisec_off, "debug"), mpisec_leave);
    for (const char* other : {"deb", "debugs", "open,debug", "", "all"})
        EXPECT_EQ(duty({protect_some}, mpisec_unsaid, other), mpisec_leave) << other;
    EXPECT_EQ(duty({protect_all}, mpisec_unsaid, "anything"), mpisec_protect);
}

TEST(SpankOptions, RequiredOnesCannot) {
    for (const mpisec_wish wish : {mpisec_unsaid, mpisec_on, mpisec_off})
        EXPECT_EQ(duty({protect_some, require_some}, wish, "secure"), mpisec_require);
    EXPECT_EQ(duty({protect_some, require_some}, mpisec_unsaid, "other"), mpisec_leave);
}

TEST(SpankOptions, JobsNumberInPaths) {
    char path[16];
    EXPECT_EQ(mpisec_expand("/run/%j/k%j", 12, path, sizeof path), 0);
    EXPECT_STREQ(path, "/run/12/k12");
    EXPECT_EQ(mpisec_expand("%", 12, path, sizeof path), 0);
    EXPECT_STREQ(path, "%");
    EXPECT_EQ(mpisec_expand("/run/%j/longer-one", 12, path, sizeof path), -1);
    EXPECT_EQ(mpisec_expand("/run/longer/%j", 123, path, sizeof path), 0);
    EXPECT_EQ(mpisec_expand("/run/longer/%j", 12345, path, sizeof path), -1);
}

}  // namespace
