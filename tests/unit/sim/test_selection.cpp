// Which algorithm serves a call: the rules' conditions, what is refused in which words, and what settings
// make of it.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "coll/selection/selection_settings.hpp"
#include "config/table.hpp"

namespace mpisec::coll {
namespace {

using fabric::Topology;

Topology block(int nodes, int each) {
    std::vector<int> node;
    for (int rank = 0; rank < nodes * each; ++rank) node.push_back(rank / each);
    return Topology(node);
}
Topology cyclic(int nodes, int each) {
    std::vector<int> node;
    for (int rank = 0; rank < nodes * each; ++rank) node.push_back(rank % nodes);
    return Topology(node);
}

Call allgather_of(int ranks, std::size_t bytes) {
    Call call;
    call.from.size.assign(static_cast<std::size_t>(ranks), bytes);
    call.from.offset.resize(static_cast<std::size_t>(ranks));
    return call;
}

Selection parsed(const std::string& toml) {
    auto selection = Selection::parse(toml, "t");
    EXPECT_TRUE(selection) << selection.error().message;
    return selection ? *selection : Selection();
}

std::string_view chosen(const Selection& selection, const Topology& topology, std::size_t bytes) {
    return selection.choose(Collective::allgather, topology, allgather_of(topology.ranks(), bytes)).name;
}

constexpr const char* table = R"(
[[rule]]
collective = "allgather"
algorithm = "o-rd2"
nodes = [2, 4]
bytes = [0, 64]
[[rule]]
collective = "allgather"
algorithm = "c-ring"
ranks_per_node = [2, 2]
placement = "cyclic"
[[rule]]
collective = "allgather"
algorithm = "hs2"
bytes = [4096, inf]
)";

TEST(Selection, FirstRuleThatFits) {
    const Selection selection = parsed(table);
    EXPECT_EQ(chosen(selection, block(2, 4), 64), "o-rd2");
    EXPECT_EQ(chosen(selection, block(2, 4), 65), "naive");
    EXPECT_EQ(chosen(selection, block(5, 4), 64), "naive");
    EXPECT_EQ(chosen(selection, block(4, 2), 1 << 20), "hs2");
    EXPECT_EQ(chosen(selection, cyclic(4, 2), 1 << 20), "c-ring");
    EXPECT_EQ(chosen(selection, cyclic(4, 3), 1 << 20), "hs2");
    EXPECT_EQ(chosen(selection, cyclic(4, 3), 4096), "hs2");
    EXPECT_EQ(chosen(Selection(), cyclic(4, 3), 4096), "naive");
}

TEST(Selection, BytesThatRanksDoNotAllKnowFitNoRange) {
    static const Entry other{"other", nullptr, nullptr};
    const Selection selection({{Collective::gather, &other, {}, {}, Interval(), {}}});
    Call call;
    call.equal_blocks = false;
    EXPECT_EQ(selection.choose(Collective::gather, block(2, 2), call).name, "linear");
    call.equal_blocks = true;
    EXPECT_EQ(selection.choose(Collective::gather, block(2, 2), call).name, "other");
    const Selection big =
        parsed("rule = [{ collective = \"allgather\", algorithm = \"hs1\", bytes = [9, 9] }]");
    Call unequal = allgather_of(2, 0);  // allgather: all ranks know all sizes, and their average counts
    unequal.equal_blocks = false;
    unequal.from.size = {2, 16};
    EXPECT_EQ(big.choose(Collective::allgather, block(2, 1), unequal).name, "hs1");
}

bool never(const Topology&, const Call&) {
    return false;
}

TEST(Selection, SkipsWhatDoesNotSuit) {
    static const Entry picky{"picky", nullptr, never};
    const Entry* hs1 = find_algorithm(Collective::allgather, "hs1");
    Selection selection({{Collective::allgather, &picky, {}, {}, {}, {}},
                         {Collective::allgather, hs1, {}, {}, Interval{0, 10}, {}}});
    EXPECT_EQ(chosen(selection, block(2, 2), 10), "hs1");
    EXPECT_EQ(chosen(selection, block(2, 2), 11), "naive");
    selection.force(Collective::allgather, &picky);
    EXPECT_EQ(chosen(selection, block(2, 2), 10), "naive");
}

TEST(Selection, EarlierNamesServe) {
    EXPECT_EQ(find_algorithm(Collective::allreduce, "slices-rsa"),
              find_algorithm(Collective::allreduce, "rabenseifner"));
    EXPECT_EQ(find_algorithm(Collective::barrier, ""), nullptr);
    const Selection selection = parsed("rule = [{ collective = \"barrier\", algorithm = \"ways\" }]");
    EXPECT_EQ(selection.choose(Collective::barrier, block(2, 2), Call()).name, "n-way-dissemination");
    for (int i = 0; i < collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        for (const Entry& entry : algorithms(collective)) {
            EXPECT_EQ(find_algorithm(collective, entry.name), &entry);
            if (!entry.alias.empty()) {
                EXPECT_EQ(find_algorithm(collective, entry.alias), &entry) << "an alias is another's name";
            }
        }
    }
}

TEST(Selection, Placements) {
    EXPECT_EQ(placement(block(3, 2)), Placement::block);
    EXPECT_EQ(placement(cyclic(3, 2)), Placement::cyclic);
    EXPECT_EQ(placement(cyclic(3, 1)), Placement::block);
    EXPECT_EQ(placement(cyclic(1, 3)), Placement::block);
    EXPECT_EQ(placement(Topology({0, 1, 2, 0, 2, 2})), Placement::cyclic);  // of unequal nodes
    EXPECT_EQ(placement(Topology({0, 1, 1, 0})), Placement::other);
    EXPECT_EQ(placement(Topology({0, 1, 2, 0, 2, 1})), Placement::other);
}

TEST(Selection, TextIsReadBackAndForgetsHowItWasWritten) {
    const Selection selection = parsed(table);
    EXPECT_EQ(selection.size(), 3u);
    EXPECT_EQ(selection.text(), R"(rule = [
    { collective = "allgather", algorithm = "o-rd2", nodes = [2, 4], bytes = [0, 64] },
    { collective = "allgather", algorithm = "c-ring", ranks_per_node = [2, 2], placement = "cyclic" },
    { collective = "allgather", algorithm = "hs2", bytes = [4096, inf] },
]
)");
    const Selection again = parsed(selection.text());
    EXPECT_EQ(again.rules(Collective::allgather), selection.rules(Collective::allgather));
    EXPECT_EQ(again.text(), selection.text());
    EXPECT_NE(parsed("").text(), selection.text());
    EXPECT_EQ(parsed("# nothing\n").text(), parsed("rule = []").text());
}

TEST(Selection, ForcingIsInTheText) {
    Selection selection = parsed(table);
    const std::string before = selection.text();
    selection.force(Collective::allgather, find_algorithm(Collective::allgather, "c-rd"));
    EXPECT_EQ(chosen(selection, block(2, 4), 64), "c-rd");
    EXPECT_EQ(chosen(selection, cyclic(4, 2), 1 << 20), "c-rd");
    EXPECT_NE(selection.text(), before);
}

TEST(Selection, MessagesAreCutByTheFirstRuleThatFits) {
    const std::string text = R"(threshold = 131072
message = [
    { bytes = [0, 1048576], segment = inf },
    { bytes = [1000000, 4194304], segment = 262144 },
]
rule = [
]
)";
    const Selection selection = parsed(text);
    EXPECT_EQ(selection.text(), text);
    const MessageRules& messages = selection.messages();
    EXPECT_EQ(messages.threshold, 131072u);
    EXPECT_EQ(messages.segment_of(1048576), MessageRule::whole);
    EXPECT_EQ(messages.segment_of(1048577), 262144u);
    EXPECT_EQ(messages.segment_of(4194305), 0u);
    EXPECT_EQ(Selection().messages(), MessageRules());
    EXPECT_EQ(parsed("threshold = 131072\n").text(), "threshold = 131072\nrule = [\n]\n");
}

TEST(Selection, WhatIsRefused) {
    const std::string rule = "[[rule]]\ncollective = \"allgather\"\nalgorithm = \"hs1\"\n";
    const std::pair<std::string, const char*> cases[] = {
        {"[rules]\n",
         "t, line 1: a selection table has no \"rules\", but [[rule]], [[message]] and threshold."},
        {"threshold = 1000\n", "t, line 1: threshold is 1024 to 268435456 bytes."},
        {"threshold = inf\n", "t, line 1: threshold is 1024 to "},
        {"message = 1\n", "t, line 1: messages are written [[message]]."},
        {"[[message]]\nbytes = [1, 2]\n", "t, line 1: a message rule is bytes and segment."},
        {"[[message]]\nbytes = [1, 2]\nsegment = 1024\nnodes = [1, 2]\n", "t, line 1: a message rule is "},
        {"[[message]]\nbytes = [2, 1]\nsegment = 1024\n", "t, line 2: bytes is [least, most]"},
        {"[[message]]\nbytes = [1, 2]\nsegment = -inf\n",
         "t, line 3: segment, unless inf, is 1024 to 268435456 bytes."},
        {"[rule]\n", "t, line 1: rules are written [[rule]]."},
        {"rule = [1]\n", "t, line 1: a rule is a table of collective, "},
        {"[[rule]]\ncollective = \"allgather\"\n", "t, line 1: a rule needs collective and algorithm."},
        {"[[rule]]\ncollective = \"allgatherv\"\nalgorithm = \"hs1\"\n",
         "t, line 2: collective is the name of one, as \"allgather\"."},
        {"[[rule]]\ncollective = 1\nalgorithm = \"hs1\"\n", "t, line 2: collective is the name of one"},
        {"[[rule]]\nalgorithm = \"hs9\"\ncollective = \"allgather\"\n",
         "t, line 2: algorithm of allgather is one of naive, o-ring, "},
        {rule + "size = 5\n", "t, line 4: a rule has no \"size\", but collective, "},
        {rule + "nodes = 5\n", "t, line 4: nodes is [least, most], whole numbers; most may be inf."},
        {rule + "nodes = [1]\n", "t, line 4: nodes is [least, most]"},
        {rule + "nodes = [2, 1]\n", "t, line 4: nodes is [least, most]"},
        {rule + "bytes = [-1, 1]\n", "t, line 4: bytes is [least, most]"},
        {rule + "bytes = [0, -inf]\n", "t, line 4: bytes is [least, most]"},
        {rule + "bytes = [0, nan]\n", "t, line 4: bytes is [least, most]"},
        {rule + "bytes = [inf, inf]\n", "t, line 4: bytes is [least, most]"},
        {rule + "bytes = [\"1\", \"2\"]\n", "t, line 4: bytes is [least, most]"},
        {rule + "ranks_per_node = [0.5, 2]\n", "t, line 4: ranks_per_node is [least, most]"},
        {rule + "placement = \"random\"\n", "t, line 4: placement is \"block\", \"cyclic\" or \"other\"."},
        {"[[rule\n", "t, line 1: this is not TOML"},
        {"\n# \xc3\xa9\n", "t, line 2: only ASCII"},
    };
    for (const auto& [text, message] : cases) {
        const auto selection = Selection::parse(text, "t");
        ASSERT_FALSE(selection) << text;
        EXPECT_EQ(selection.error().message.rfind(message, 0), 0u) << selection.error().message;
    }
}

TEST(Settings, EveryCollectiveHasItsVariable) {
    ASSERT_EQ(config::algorithm_variables.size(), static_cast<std::size_t>(collectives));
    for (std::size_t i = 0; i < config::algorithm_variables.size(); ++i) {
        const std::string key(name(static_cast<Collective>(i)));
        ASSERT_NE(config::find_key(key), nullptr) << key;
        EXPECT_EQ(config::find_key(key)->variable, config::algorithm_variables[i]);
    }
}

TEST(Settings, TheBuiltInTableIsInForceUnlessTheySayElse) {
    config::Settings settings;
    auto selection = selection_of(settings);
    ASSERT_TRUE(selection) << selection.error().message;
    EXPECT_EQ(selection->text(), built_in_selection().text());

    for (const Cpus cpus : {Cpus::own, Cpus::shared}) {
        settings.algorithm[static_cast<std::size_t>(Collective::allgather)] = "o-ring";
        selection = selection_of(settings, cpus);
        ASSERT_TRUE(selection);
        EXPECT_EQ(chosen(*selection, block(4, 4), 1000), "o-ring");
    }

    settings.algorithm[static_cast<std::size_t>(Collective::allgather)] = "o-wing";
    selection = selection_of(settings);
    ASSERT_FALSE(selection);
    EXPECT_EQ(selection.error().message.rfind(
                  "MPISEC_ALLGATHER cannot be \"o-wing\": \"auto\" or one of naive, ", 0),
              0u)
        << selection.error().message;
}

struct Sum final : fabric::Reduction {
    bool combine(fabric::PlaintextBuffer, fabric::Plaintext) const override { return true; }
};

TEST(Settings, TheBuiltInTableServesEverything) {
    const Sum sum;
    const Selection selection = built_in_selection();
    EXPECT_GT(selection.size(), 0u);
    for (int i = 0; i < collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        EXPECT_FALSE(selection.rules(collective).empty()) << name(collective);
        for (const Topology& topology : {block(2, 1), cyclic(3, 5), block(40, 2)})
            for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 30})
                for (bool equal : {true, false}) {
                    Call call = allgather_of(topology.ranks(), bytes);
                    call.to = call.from;
                    call.equal_blocks = equal;
                    call.reduction = &sum;
                    const Entry& entry = selection.choose(collective, topology, call);
                    EXPECT_EQ(find_algorithm(collective, entry.name), &entry);
                }
    }
}

/// What a node's ranks would all open is opened once, and the other collectives are chosen for as elsewhere.
TEST(Settings, WhereRanksShareCpusTheirRulesComeFirst) {
    const config::Settings settings;
    const auto own = selection_of(settings), shared = selection_of(settings, Cpus::shared);
    ASSERT_TRUE(own && shared);
    const Selection first = built_in_selection(Cpus::shared);
    for (int i = 0; i < collectives; ++i) {
        const auto one = static_cast<Collective>(i);
        std::vector<Rule> wanted = first.rules(one);
        wanted.insert(wanted.end(), own->rules(one).begin(), own->rules(one).end());
        EXPECT_EQ(shared->rules(one), wanted) << name(one);
    }
    for (const std::size_t bytes : {64, 16 * 1024, 1024 * 1024})
        EXPECT_NE(chosen(*own, block(2, 2), bytes), chosen(*shared, block(2, 2), bytes)) << bytes;
}

/// The site's rules, and behind them the built-in ones.
TEST(Settings, ATableOfTheSite) {
    const std::string path = testing::TempDir() + "mpisec-selection.toml";
    std::ofstream(path) << table;
    config::Settings settings;
    settings.tuning = path;
    auto selection = selection_of(settings);
    ASSERT_TRUE(selection) << selection.error().message;
    const Selection own = parsed(table), built_in = built_in_selection();
    for (int i = 0; i < collectives; ++i) {  // the site's rules, then the built-in ones
        const auto one = static_cast<Collective>(i);
        std::vector<Rule> wanted = own.rules(one);
        wanted.insert(wanted.end(), built_in.rules(one).begin(), built_in.rules(one).end());
        EXPECT_EQ(selection->rules(one), wanted) << name(one);
    }
    std::ofstream(path) << "[[rule]]\n";
    selection = selection_of(settings);
    ASSERT_FALSE(selection);
    EXPECT_EQ(selection.error().message,
              "MPISEC_TUNING=" + path + ", line 1: a rule needs collective and algorithm.");
    std::remove(path.c_str());
    selection = selection_of(settings);
    ASSERT_FALSE(selection);
    EXPECT_EQ(selection.error().message, "The selection table " + path +
                                             " cannot be opened: No such file or directory. MPISEC_TUNING "
                                             "names it.");
}

TEST(Selection, ChoosingIsNoSlowerThanAMessage) {
    const Selection selection = parsed(table);
    const Topology topology = block(16, 64);
    const Selection::For rules = selection.for_topology(Collective::allgather, topology);
    const Call call = allgather_of(1024, 100);
    constexpr int calls = 100000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) ASSERT_EQ(rules.choose(topology, call).name, "naive");
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    RecordProperty("nanoseconds", std::to_string(taken.count() / calls * 1e9));
    EXPECT_LT(taken.count() / calls, 20e-6);  // sanitizers and loaded machines; some 20 ns otherwise
}

}  // namespace
}  // namespace mpisec::coll
