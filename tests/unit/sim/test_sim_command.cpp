// `mpisec sim`: tables, JSON, models and what is refused.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/commands.hpp"
#include "coll/collective.hpp"

namespace mpisec::cli {
namespace {

struct Ran {
    Status status = 0;
    std::string out, err;
};

Ran sim_any(const std::string& arguments) {
    CLI::App app;
    Ran ran;
    add_sim(app, ran.status);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    try {
        app.parse("sim " + arguments);
    } catch (const CLI::ParseError& error) {
        ran.status = 2;  // as main.cpp has it
        ran.err = error.what();
    }
    ran.out = testing::internal::GetCapturedStdout();
    ran.err += testing::internal::GetCapturedStderr();
    return ran;
}

Ran sim(const std::string& arguments) {
    return sim_any("allgather " + arguments);
}

TEST(SimCommand, Table) {
    const Ran ran = sim("--ranks 8 --nodes 2 --size 0,1K,1M");
    EXPECT_EQ(ran.status, 0) << ran.err;
    for (const char* word :
         {"8 ranks on 2 nodes, block placement", "naive", "o-rd2", "hsc", "0 B", "1 KiB", "1 MiB"})
        EXPECT_NE(ran.out.find(word), std::string::npos) << word << "\n" << ran.out;
    EXPECT_EQ(ran.out.find("r_c"), std::string::npos);
    std::istringstream lines(ran.out);
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(" B ") == std::string::npos && line.find("iB ") == std::string::npos) continue;
        ++rows;
        EXPECT_EQ(std::count(line.begin(), line.end(), '*'), 1) << line;
    }
    EXPECT_EQ(rows, 3);
    EXPECT_NE(sim("--ranks 8 --nodes 2 --size 16 --metrics").out.find("r_c"), std::string::npos);
}

TEST(SimCommand, JsonFollowsTheModel) {
    const std::string path = testing::TempDir() + "mpisec-sim-model.toml";
    std::ofstream(path)
        << "shared_link = false\nbetween = {alpha_us = 1000, beta_ns_per_byte = 0}\n"
        << "seal = {alpha_us = 0, beta_ns_per_byte = 0}\nopen = {alpha_us = 0, beta_ns_per_byte = 0}\n";
    const Ran ran = sim("--ranks 4 --nodes 4 --size 64 --algorithm c-ring,c-rd --json --model " + path);
    std::remove(path.c_str());
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto document = nlohmann::json::parse(ran.out);
    ASSERT_EQ(document["results"].size(), 2u);
    const auto& ring = document["results"][0];
    const auto& doubling = document["results"][1];
    EXPECT_EQ(ring["algorithm"], "c-ring");
    EXPECT_NEAR(ring["microseconds"].get<double>(), 3000, 1);  // three rounds
    EXPECT_NEAR(doubling["microseconds"].get<double>(), 2000, 1);
    EXPECT_FALSE(ring["best"].get<bool>());
    EXPECT_TRUE(doubling["best"].get<bool>());
    EXPECT_EQ(doubling["r_d"], 3);
    EXPECT_EQ(doubling["s_c"], 3 * (64 + 16));
}

TEST(SimCommand, PlacementMatters) {
    const auto sealed = [](const char* placement) {
        const Ran ran = sim(
            std::string("--ranks 8 --nodes 2 --size 1K --algorithm o-ring --json --placement ") + placement);
        return nlohmann::json::parse(ran.out)["results"][0]["microseconds"].get<double>();
    };
    EXPECT_DOUBLE_EQ(sealed("block"), sealed("cyclic"));  // the ring goes in the order of nodes
    const auto copied = [](const char* placement) {
        const Ran ran = sim(
            std::string("--ranks 8 --nodes 2 --size 1M --algorithm o-rd --json --placement ") + placement);
        return nlohmann::json::parse(ran.out)["results"][0]["microseconds"].get<double>();
    };
    EXPECT_LT(copied("block"), copied("cyclic"));  // where blocks do not lie side by side they are packed
}

TEST(SimCommand, EveryCollectiveHasEveryAlgorithm) {
    for (int i = 0; i < coll::collectives; ++i) {
        const auto collective = static_cast<coll::Collective>(i);
        std::string command(name(collective));
        if (i % 2) std::replace(command.begin(), command.end(), '_', '-');
        const Ran ran = sim_any(command + " --ranks 12 --nodes 3 --placement cyclic --json");
        ASSERT_EQ(ran.status, 0) << command << ran.err;
        const auto document = nlohmann::json::parse(ran.out);
        EXPECT_EQ(document["collective"], name(collective));
        std::set<std::string> seen;
        for (const auto& row : document["results"]) {
            seen.insert(row["algorithm"]);
            EXPECT_GT(row["microseconds"].get<double>(), 0) << row;
        }
        EXPECT_TRUE(seen.count(std::string(coll::algorithms(collective).front().name))) << command;
        for (const std::string& one : seen)
            EXPECT_NE(coll::find_algorithm(collective, one), nullptr) << command << " " << one;
    }
}

TEST(SimCommand, AsManyRanksAsLargeClustersHave) {
    const Ran ran =
        sim_any("allreduce --ranks 65536 --nodes 1024 --size 1K --algorithm smp,multi-leader --json");
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto results = nlohmann::json::parse(ran.out)["results"];
    ASSERT_EQ(results.size(), 2u);
    for (const auto& result : results) EXPECT_EQ(result["r_d"], 10) << result;  // lg 1024
    EXPECT_EQ(results[0]["s_d"], 10 * 1024);
    EXPECT_EQ(results[1]["s_d"], 10 * 16);  // a slice of 64
}

TEST(SimCommand, ManyRanksAreNotSimulatedInPairs) {
    const auto algorithms = [](const char* shape) {
        const Ran ran = sim_any(std::string("alltoall --json --size 0 ") + shape);
        const auto document = nlohmann::json::parse(ran.out);
        std::set<std::string> seen;
        for (const auto& row : document["results"]) seen.insert(row["algorithm"]);
        return seen;
    };
    EXPECT_EQ(algorithms("--ranks 4097 --nodes 2"), (std::set<std::string>{"smp", "pairs", "bruck"}));
    EXPECT_EQ(algorithms("--ranks 8 --nodes 2").size(), coll::algorithms(coll::Collective::alltoall).size());
}

TEST(SimCommand, ABarrierHasNoSize) {
    const Ran ran = sim_any("barrier --ranks 4 --nodes 2");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '*'), 2) << ran.out;  // one in the heading
    EXPECT_EQ(sim_any("barrier --ranks 4 --nodes 2 --size 16").status, 2);
}

TEST(SimCommand, ReductionsTakeWholeElements) {
    const Ran ran = sim_any("allreduce --ranks 4 --nodes 2 --size 12");
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.err.find("elements of 8 bytes"), std::string::npos) << ran.err;
}

TEST(SimCommand, NamedModelsAndNoEncryption) {
    const auto time = [](const std::string& more) {
        const Ran ran = sim("--ranks 16 --nodes 4 --size 64K --algorithm hs2 --json " + more);
        EXPECT_EQ(ran.status, 0) << ran.err;
        return nlohmann::json::parse(ran.out)["results"][0]["microseconds"].get<double>();
    };
    EXPECT_LT(time("--model noleland"), time(""));
    EXPECT_LT(time("--model noleland --unencrypted"), time("--model noleland"));
    EXPECT_GT(time("--model bridges-2"), 0);
    const Ran ran = sim("--ranks 4 --nodes 2 --size 1 --model noleland --unencrypted");
    EXPECT_NE(ran.out.find("cluster model: noleland, nothing encrypted"), std::string::npos) << ran.out;
}

nlohmann::json startup(const std::string& arguments) {
    const Ran ran = sim_any("startup --handshake 100 --json " + arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
}

/// A card with one run: hello, two numbers, run.
constexpr int card = 256 + 8 + 12;

TEST(SimCommand, StartupSendsACardForEachNode) {
    const auto two = startup("--ranks 2 --nodes 2");
    EXPECT_EQ(two["card_bytes"], 2 * card);
    EXPECT_EQ(two["first_node"]["received"], card + 84 + 20);  // its card, then the handshake's and the count
    EXPECT_EQ(two["first_node"]["sent"], 2 * card + 48 + 49);
    for (const char* shape :
         {"--ranks 64 --nodes 16", "--ranks 1024 --nodes 16", "--ranks 1024 --nodes 16 --placement cyclic"})
        EXPECT_EQ(startup(shape)["card_bytes"], 16 * card) << shape;
    EXPECT_EQ(startup("--ranks 1024 --nodes 16")["median_node"]["received"],
              startup("--ranks 64 --nodes 16")["median_node"]["received"]);
    EXPECT_EQ(startup("--ranks 8 --nodes 1")["first_node"]["received"], 0);
    for (const char* shape : {"--ranks 64 --nodes 16", "--ranks 64 --nodes 16 --placement cyclic"})
        EXPECT_EQ(startup(shape)["rank_bytes_lasting"], 0) << shape;
    EXPECT_GT(startup("--ranks 60 --nodes 16")["rank_bytes_lasting"], 0);  // nodes of 3 and 4
    EXPECT_EQ(sim_any("startup --ranks 2 --nodes 3").status, 2);
}

TEST(SimCommand, EarlierNamesOfAlgorithmsServe) {
    const Ran ran = sim_any("bcast --ranks 8 --nodes 2 --size 1K --algorithm naive");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find("binomial"), std::string::npos) << ran.out;
    EXPECT_EQ(ran.out.find("naive"), std::string::npos) << ran.out;
}

TEST(SimCommand, WhatIsRefused) {
    const std::pair<const char*, const char*> cases[] = {
        {"--nodes 2", "--ranks"},
        {"--ranks 2 --nodes 4", "2 ranks cannot fill 4 nodes"},
        {"--ranks 0 --nodes 1", "--ranks"},
        {"--ranks 65537 --nodes 1", "--ranks"},
        {"--ranks 4097 --nodes 2 --algorithm hs1,naive", "With naive any two ranks have messages"},
        {"--ranks 4 --nodes 2 --algorithm o-wing", "o-wing"},
        {"--ranks 4 --nodes 2 --placement random", "random"},
        {"--ranks 4 --nodes 2 --size 9G", "--size"},
        {"--ranks 4 --nodes 2 --size -1", "--size"},
        {"--ranks 4 --nodes 2 --size many", "--size"},
    };
    for (const auto& [arguments, word] : cases) {
        const Ran ran = sim(arguments);
        EXPECT_EQ(ran.status, 2) << arguments;
        EXPECT_NE(ran.err.find(word), std::string::npos) << arguments << ": " << ran.err;
        EXPECT_EQ(ran.out, "") << arguments;
    }
    const Ran lost = sim("--ranks 4 --nodes 2 --model /nonexistent.toml");
    EXPECT_EQ(lost.status, 1);
    EXPECT_NE(lost.err.find("/nonexistent.toml"), std::string::npos) << lost.err;
}

}  // namespace
}  // namespace mpisec::cli
