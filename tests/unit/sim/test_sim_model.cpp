// Cluster models in TOML: what is read, and what is refused in which words.
#include <gtest/gtest.h>

#include "fabric/sim/model_file.hpp"

namespace mpisec::fabric::sim {
namespace {

TEST(ModelFile, Whole) {
    const auto model = parse_model(R"(
shared_link = false
between = { alpha_us = 20, gbit_per_s = 100 }
[inside]
alpha_us = 0.25
gbyte_per_s = 4
[seal]
alpha_us = 1
beta_ns_per_byte = 0.5
[open]
alpha_us = 2
beta_ns_per_byte = 0
[copy]
alpha_us = 0
beta_ns_per_byte = 3
)",
                                   "model.toml");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_FALSE(model->shared_link);
    EXPECT_DOUBLE_EQ(model->between.time(1000), 20e-6 + 1000 * 0.08e-9);
    EXPECT_DOUBLE_EQ(model->inside.time(1000), 0.25e-6 + 1000 * 0.25e-9);
    EXPECT_DOUBLE_EQ(model->seal.time(1000), 1e-6 + 1000 * 0.5e-9);
    EXPECT_DOUBLE_EQ(model->open.time(1000), 2e-6);
    EXPECT_DOUBLE_EQ(model->copy.time(1000), 3e-6);
    EXPECT_FALSE(model->shared || model->barrier || model->open.beyond);
}

TEST(ModelFile, WhatIsNotMentionedStays) {
    const auto model = parse_model("[open]\nalpha_us = 2\ngbyte_per_s = 1\n", "model.toml");
    ASSERT_TRUE(model);
    EXPECT_EQ(model->between.alpha, default_model().between.alpha);
    EXPECT_EQ(model->shared_link, default_model().shared_link);
    EXPECT_EQ(model->open.alpha, 2e-6);
}

TEST(ModelFile, NodesWithManyRanks) {
    const auto model = parse_model(
        "barrier_us = 3\ncache_kib = 2\nshared = { alpha_us = 1, gbyte_per_s = 4, beyond_ns_per_byte = 0.5 "
        "}\n",
        "model.toml");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_DOUBLE_EQ(model->barrier.value(), 3e-6);
    EXPECT_DOUBLE_EQ(model->cache, 2048);
    ASSERT_TRUE(model->shared);
    EXPECT_DOUBLE_EQ(model->shared->time(1000), 1e-6 + 1000 * 0.25e-9);
    EXPECT_DOUBLE_EQ(model->shared->beyond.value(), 0.5e-9);
}

TEST(ModelFile, WhatIsRefused) {
    const std::pair<const char*, const char*> cases[] = {
        {"[network]\n", "m, line 1: a cluster model has no \"network\""},
        {"\n[open]\nspeed = 1\n", "m, line 3: open has no \"speed\""},
        {"[open]\nalpha_us = 1\n", "m, line 1: open needs alpha_us and one of"},
        {"[open]\ngbit_per_s = 1\n", "m, line 1: open needs alpha_us and one of"},
        {"[open]\nalpha_us = 1\ngbit_per_s = 1\ngbyte_per_s = 1\n",
         "m, line 1: open needs alpha_us and one of"},
        {"[open]\nalpha_us = -1\n", "m, line 2: alpha_us of open is a number that is not negative"},
        {"[open]\nalpha_us = nan\n", "m, line 2: alpha_us of open is a number"},
        {"[open]\nalpha_us = \"1\"\n", "m, line 2: alpha_us of open is a number"},
        {"[open]\ngbit_per_s = 0\n", "m, line 2: gbit_per_s of open is a number greater than 0"},
        {"open = 5\n", "m, line 1: open is a table of"},
        {"[open]\nalpha_us = 1\nbeyond_ns_per_byte = 1\n", "m, line 1: open needs alpha_us and one of"},
        {"barrier_us = -1\n", "m, line 1: barrier_us is a number that is not negative"},
        {"cache_kib = true\n", "m, line 1: cache_kib is a number that is not negative"},
        {"shared_link = 1\n", "m, line 1: shared_link is true or false"},
        {"[open\n", "m, line 1: this is not TOML"},
        {"# \xc3\xa9\n", "m, line 1: only ASCII"},
    };
    for (const auto& [text, message] : cases) {
        const auto model = parse_model(text, "m");
        ASSERT_FALSE(model) << text;
        EXPECT_EQ(model.error().message.rfind(message, 0), 0u) << model.error().message;
    }
}

TEST(ModelFile, ThatCanNotBeRead) {
    for (const char* path : {"/nonexistent.toml", "/tmp"}) {
        const auto model = read_model(path);
        ASSERT_FALSE(model) << path;
        EXPECT_NE(model.error().message.find(path), std::string::npos);
    }
}

}  // namespace
}  // namespace mpisec::fabric::sim
