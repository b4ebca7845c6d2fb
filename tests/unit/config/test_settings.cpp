// Settings: what wins over what, what is refused and how the refusal reads, and that docs/configuration.md
// lists the code's table.
#include "config/settings.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "config/calibration_file.hpp"
#include "config/sources.hpp"
#include "config/table.hpp"
#include "config/values.hpp"

extern char** environ;

namespace mpisec::config {
namespace {

/// A home of its own and an environment without MPISEC_ variables, as it was afterwards.
class Load : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/mpisec-settings-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        home = name;
        for (char** variable = environ; *variable; ++variable) before_.emplace_back(*variable);
        for (const std::string& variable : before_)
            if (variable.starts_with("MPISEC_")) unsetenv(variable.substr(0, variable.find('=')).c_str());
        setenv("HOME", home.c_str(), 1);
    }
    void TearDown() override {
        clearenv();
        for (const std::string& variable : before_) {
            const auto equals = variable.find('=');
            setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
        unlink(config_path().c_str());
        rmdir((home + "/.config/mpisec").c_str());
        rmdir((home + "/.config").c_str());
        rmdir(home.c_str());
    }
    std::string config_path() const { return home + "/.config/mpisec/config.toml"; }
    void write_config(const std::string& text) const {
        mkdir((home + "/.config").c_str(), 0700);
        mkdir((home + "/.config/mpisec").c_str(), 0700);
        std::ofstream(config_path()) << text;
    }
    std::string error() const {
        auto settings = load();
        return settings ? "no error" : settings.error().message;
    }

    std::string home;

  private:
    std::vector<std::string> before_;
};

TEST(CalibrationPath, NowhereWithoutADirectory) {
    Settings settings;
    EXPECT_EQ(calibration_path(settings), "");
    settings.cache_dir = "/cache";
    EXPECT_EQ(calibration_path(settings), "/cache/calibration.json");
}

TEST_F(Load, DefaultsAreThoseOfTheTable) {
    auto settings = load();
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->key_file, home + "/.config/mpisec/key");
    EXPECT_EQ(settings->cache_dir, home + "/.cache/mpisec");
    for (const Row& row : rows(*settings)) {
        const Setting* setting = find_variable(row.variable);
        ASSERT_NE(setting, nullptr);
        EXPECT_EQ(row.origin, "default") << row.variable;
        std::string documented(setting->default_value);
        if (documented.starts_with("~/")) documented = home + documented.substr(1);
        EXPECT_EQ(row.value, documented) << row.variable;
    }
}

TEST_F(Load, VariableWinsOverFileWinsOverDefault) {
    write_config("segment = \"256K\"\nworkers = 3\nstall_time = 1.5\n");
    setenv("MPISEC_WORKERS", "2", 1);
    auto settings = load();
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->segment, 256u * 1024);
    EXPECT_EQ(settings->stall_seconds, 1.5);
    EXPECT_EQ(settings->workers, 2);
    EXPECT_EQ(settings->threshold, 0u);
    const std::vector<Row> all = rows(*settings);
    auto origin_of = [&](const char* variable) {
        return std::ranges::find(all, variable, &Row::variable)->origin;
    };
    EXPECT_EQ(origin_of("MPISEC_SEGMENT"), "file " + config_path());
    EXPECT_EQ(origin_of("MPISEC_WORKERS"), "environment");
    EXPECT_EQ(origin_of("MPISEC_PIPELINE_THRESHOLD"), "default");
}

TEST_F(Load, EverySettingIsReadFromItsVariable) {
    const std::pair<const char*, const char*> values[] = {
        {"MPISEC_AEAD", "openssl:aes-128-gcm"},
        {"MPISEC_KEY_FILE", "/k"},
        {"MPISEC_PLUGIN_DIR", "/p"},
        {"MPISEC_MPI", "openmpi"},
        {"MPISEC_UNPROTECTED", "allow"},
        {"MPISEC_STALL_TIME", "2.5"},
        {"MPISEC_STALL_ACTION", "abort"},
        {"MPISEC_SINGLETON", "allow"},
        {"MPISEC_NODE_TIME", "4.5"},
        {"MPISEC_JOIN_TIME", "5.5"},
        {"MPISEC_JOB", "j"},
        {"MPISEC_STATS", "json:/s"},
        {"MPISEC_STATS_INTERVAL", "1.5"},
        {"MPISEC_TRACE", "/d"},
        {"MPISEC_PIPELINE", "off"},
        {"MPISEC_PIPELINE_THRESHOLD", "2K"},
        {"MPISEC_SEGMENT", "3K"},
        {"MPISEC_SAME_NODE", "seal"},
        {"MPISEC_CONNECTIONS", "authenticate"},
        {"MPISEC_WORKERS", "7"},
        {"MPISEC_YIELD", "on"},
        {"MPISEC_PROGRESS", "thread"},
        {"MPISEC_REKEY_MESSAGES", "5"},
        {"MPISEC_REKEY_BYTES", "9"},
        {"MPISEC_CACHE_DIR", "/c"},
        {"MPISEC_TUNING", "/t"},
        {"MPISEC_BARRIER", "a0"},
        {"MPISEC_BCAST", "a1"},
        {"MPISEC_GATHER", "a2"},
        {"MPISEC_SCATTER", "a3"},
        {"MPISEC_ALLGATHER", "a4"},
        {"MPISEC_ALLTOALL", "a5"},
        {"MPISEC_REDUCE", "a6"},
        {"MPISEC_ALLREDUCE", "a7"},
        {"MPISEC_REDUCE_SCATTER", "a8"},
        {"MPISEC_SCAN", "a9"},
        {"MPISEC_EXSCAN", "a10"},
        {"MPISEC_NEIGHBOR_ALLGATHER", "a11"},
        {"MPISEC_NEIGHBOR_ALLTOALL", "a12"},
    };
    for (auto [variable, value] : values) setenv(variable, value, 1);
    auto s = load();
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_EQ(s->aead, "openssl:aes-128-gcm");
    EXPECT_EQ(s->key_file, "/k");
    EXPECT_EQ(s->plugin_dir, "/p");
    EXPECT_EQ(s->mpi, "openmpi");
    EXPECT_TRUE(s->unprotected_allow);
    EXPECT_TRUE(s->singleton_allow);
    EXPECT_TRUE(s->same_node_sealed);
    EXPECT_EQ(s->same_node, Settings::SameNode::seal);
    EXPECT_EQ(s->stall_seconds, 2.5);
    EXPECT_EQ(s->stall_action, Settings::StallAction::abort);
    EXPECT_EQ(s->node_seconds, 4.5);
    EXPECT_EQ(s->join_seconds, 5.5);
    EXPECT_EQ(s->job, "j");
    EXPECT_EQ(s->stats, "json:/s");
    EXPECT_EQ(s->stats_interval, 1.5);
    EXPECT_EQ(s->trace, "/d");
    EXPECT_EQ(s->pipeline, Settings::Pipeline::off);
    EXPECT_EQ(s->threshold, 2048u);
    EXPECT_EQ(s->segment, 3072u);
    EXPECT_EQ(s->workers, 7);
    EXPECT_EQ(s->yield, Settings::Yield::on);
    EXPECT_EQ(s->progress, Settings::Progress::thread);
    EXPECT_EQ(s->rekey_messages, 5u);
    EXPECT_EQ(s->rekey_bytes, 9u);
    EXPECT_EQ(s->cache_dir, "/c");
    EXPECT_EQ(s->tuning, "/t");
    for (std::size_t i = 0; i < algorithm_variables.size(); ++i)
        EXPECT_EQ(s->algorithm[i], "a" + std::to_string(i)) << algorithm_variables[i];
    for (const Row& row : rows(*s)) {  // what is shown is what was set
        auto given = std::find_if(std::begin(values), std::end(values),
                                  [&](auto& v) { return v.first == row.variable; });
        if (given == std::end(values)) continue;
        EXPECT_EQ(row.value, given->second);
        EXPECT_EQ(row.origin, "environment");
    }
    EXPECT_EQ(std::size(values) + 1, table().size())
        << "a setting is missing from this test (all but MPISEC_CONFIG)";
}

TEST_F(Load, UnknownVariableIsNamedWithTheNearestAndItsValueIsNotShown) {
    setenv("MPISEC_KEYFILE", "secret", 1);
    EXPECT_EQ(
        error(),
        "The variable MPISEC_KEYFILE is not a setting of MPIsec; the closest is MPISEC_KEY_FILE. Correct "
        "or unset it.");
}

TEST_F(Load, LabVariablesAndEmptyOnesAreIgnored) {
    setenv("MPISEC_LAB_ANYTHING", "x", 1);
    setenv("MPISEC_PROVIDER_THREADS", "2", 1);
    setenv("MPISEC_SEGMENT", "", 1);
    setenv("MPISECURE", "x", 1);
    auto settings = load();
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->segment, 0u);
}

TEST_F(Load, BadValuesAreNamedWithWhatIsAccepted) {
    setenv("MPISEC_SEGMENT", "12 apples", 1);
    EXPECT_EQ(error(),
              "MPISEC_SEGMENT cannot be \"12 apples\": \"auto\" or a whole number from 1K to 256M is "
              "accepted, with a suffix K, M or G (powers of two).");
    unsetenv("MPISEC_SEGMENT");
    setenv("MPISEC_UNPROTECTED", "yes", 1);
    EXPECT_EQ(error(), "MPISEC_UNPROTECTED cannot be \"yes\": \"allow\" or \"refuse\" is accepted.");
}

TEST_F(Load, FileErrorsNameFileAndLine) {
    write_config("# settings\nsegmnt = 5\n");
    EXPECT_EQ(error(),
              config_path() + ", line 2: \"segmnt\" is not a setting of MPIsec; the closest is \"segment\".");
    write_config("\n\nsegment = 5\n");
    EXPECT_TRUE(error().starts_with(config_path() + ", line 3: segment cannot be \"5\": ")) << error();
    write_config("segment = true\n");
    EXPECT_TRUE(error().starts_with(config_path() + ", line 1: segment takes a string or a number"))
        << error();
    write_config("[wire]\nsegment = 5\n");
    EXPECT_TRUE(error().starts_with(config_path() + ", line 1: \"wire\" is not a setting")) << error();
    write_config("segment = \n");
    EXPECT_TRUE(error().starts_with(config_path() + ", line 1: this is not TOML: ")) << error();
    write_config("SEGMENT = 5\n");
    EXPECT_EQ(error(), config_path() +
                           ", line 1: \"SEGMENT\" is not a setting of MPIsec; the closest is \"segment\".");
    for (const char* key : {"mpi", "config", "plugin_dir", "Mpi"}) {
        write_config(std::string(key) + " = \"/x\"\n");
        EXPECT_TRUE(error().starts_with(config_path() + ", line 1: \"" + key +
                                        "\" cannot be set in a file, only by the variable MPISEC_"))
            << error();
    }
}

TEST_F(Load, AnEmptyTextInTheFileIsAnError) {
    for (const Setting& setting : table()) {
        if (setting.key.empty()) continue;
        write_config(std::string(setting.key) + " = \"\"\n");
        EXPECT_TRUE(error().starts_with(config_path() + ", line 1: " + std::string(setting.key) +
                                        " cannot be \"\": "))
            << setting.key << ": " << error();
    }
}

TEST_F(Load, ANamedFileMustBeThere) {
    setenv("MPISEC_CONFIG", (home + "/none.toml").c_str(), 1);
    EXPECT_EQ(error(),
              "The settings file " + home +
                  "/none.toml cannot be opened: No such file or directory. MPISEC_CONFIG names another.");
    setenv("MPISEC_CONFIG", home.c_str(), 1);
    EXPECT_EQ(error(),
              "The settings file " + home + " cannot be read: Is a directory. MPISEC_CONFIG names another.");
    setenv("MPISEC_CONFIG", "/dev/zero", 1);
    EXPECT_EQ(error(), "The settings file /dev/zero is longer than 1 MiB. MPISEC_CONFIG names another.");
    setenv("MPISEC_CONFIG", "/dev/null", 1);
    EXPECT_EQ(error(), "no error");
}

TEST_F(Load, TildeIsTheHomeDirectory) {
    write_config("key_file = \"~/secret/key\"\n");
    auto settings = load();
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->key_file, home + "/secret/key");
}

TEST_F(Load, CharactersBeyondAsciiAreEscaped) {
    write_config("segment = 4096\nkey_file = \"/k\u00fcche/key\"\n");
    EXPECT_EQ(error(),
              config_path() +
                  ", line 2: only ASCII characters are accepted; inside a string write others as \\uXXXX.");
    write_config("key_file = \"/k\\u00fcche/key\"\n");
    auto settings = load();
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->key_file, "/k\u00fcche/key");
}

TEST_F(Load, DescriptionHasALinePerSetting) {
    auto settings = load();
    ASSERT_TRUE(settings) << settings.error().message;
    const std::string text = describe(*settings);
    EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), table().size());
    for (const Setting& setting : table())
        EXPECT_NE(text.find(setting.variable), std::string::npos) << setting.variable;
}

TEST(Values, Sizes) {
    constexpr std::uint64_t most = 1ull << 40;
    EXPECT_EQ(parse_size("0", 0, most).value(), 0u);
    EXPECT_EQ(parse_size("64K", 0, most).value(), 65536u);
    EXPECT_EQ(parse_size("1m", 0, most).value(), 1u << 20);
    EXPECT_EQ(parse_size("1024G", 0, most).value(), most);
    for (const char* bad : {"", "K", "-1", "+1", " 1", "1 ", "1KB", "0x10", "1.5K", "1025G",
                            "18446744073709551616", "17179869184G", "99999999999999999999G", "1T"})
        EXPECT_FALSE(parse_size(bad, 0, most)) << bad;
    EXPECT_FALSE(parse_size("1023", 1024, 2048));
    EXPECT_TRUE(parse_size("1024", 1024, 2048));
    EXPECT_TRUE(parse_size("2K", 1024, 2048));
    EXPECT_FALSE(parse_size("2049", 1024, 2048));
    for (std::uint64_t size : {0ull, 1ull, 1023ull, 1024ull, 1536ull, 1ull << 20, 3ull << 30})
        EXPECT_EQ(parse_size(show_size(size), 0, most).value(), size);
}

TEST(Values, Seconds) {
    EXPECT_EQ(parse_seconds("0", 1e6).value(), 0.0);
    EXPECT_EQ(parse_seconds("0.25", 1e6).value(), 0.25);
    for (const char* bad : {"", "-1", "nan", "inf", "1e7", "5s", "1,5"})
        EXPECT_FALSE(parse_seconds(bad, 1e6)) << bad;
}

TEST(Documentation, ListsTheTableOfTheCode) {
    std::ifstream file(MPISEC_DOCUMENTATION "/configuration.md");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string expected = "| variable | TOML key | default | accepted |\n| --- | --- | --- | --- |\n";
    for (const Setting& s : table()) {
        const std::string key = s.key.empty() ? "" : "`" + std::string(s.key) + "`";
        expected += "| `" + std::string(s.variable) + "` | " + key + " | " + std::string(s.default_value) +
                    " | " + std::string(s.accepted) + " |\n";
        EXPECT_NE(text.find("**" + std::string(s.variable) + "**"), std::string::npos)
            << s.variable << " is not explained";
    }
    EXPECT_NE(text.find(expected + "\n"), std::string::npos)
        << "docs/configuration.md should hold this table:\n"
        << expected;
}

TEST(Documentation, NamesTheSettingsThatMustAgree) {
    std::ifstream file(MPISEC_DOCUMENTATION "/configuration.md");
    std::string paragraph;
    for (std::string line; std::getline(file, line);) {
        if (paragraph.empty() ? line.starts_with("All ranks of a job must agree") : !line.empty())
            paragraph += line + "\n";
        else if (!paragraph.empty())
            break;
    }
    for (const Setting& setting : table()) {
        const auto of_collective = std::ranges::find(algorithm_variables, setting.variable);
        if (of_collective != algorithm_variables.end()) continue;  // "MPISEC_<COLLECTIVE>"
        const bool named = paragraph.find("`" + std::string(setting.variable) + "`") != std::string::npos;
        const bool in_part = setting.variable == "MPISEC_AEAD" || setting.variable == "MPISEC_TUNING";
        EXPECT_EQ(named, setting.must_agree || in_part) << setting.variable << " in:\n" << paragraph;
    }
    EXPECT_NE(paragraph.find("MPISEC_<COLLECTIVE>"), std::string::npos);
}

}  // namespace
}  // namespace mpisec::config
