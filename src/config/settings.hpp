// The effective settings of a process: MPISEC_* variables over a TOML file over the defaults
// (docs/configuration.md).
//
// Every rank reads them in MPI_Init: no stream, no locale, and no file except the one TOML file, where it exists.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace mpisec::config {

/// The variables that name a collective's algorithm, in the order of coll::Collective.
inline constexpr std::array algorithm_variables = {
#define COLLECTIVE(name, NAME) std::string_view("MPISEC_" #NAME),
#include "base/collectives.def"
};

/// One string for each of them.
struct Algorithms : std::array<std::string, algorithm_variables.size()> {
    constexpr Algorithms() { fill("auto"); }
};

struct Settings {
    std::string config;         ///< MPISEC_CONFIG; default ~/.config/mpisec/config.toml
    std::string aead = "auto";  ///< MPISEC_AEAD: library:cipher, library, cipher, auto
    std::string key_file;       ///< MPISEC_KEY_FILE; default ~/.config/mpisec/key
    std::string plugin_dir;     ///< MPISEC_PLUGIN_DIR; empty: beside the library
    std::string mpi;            ///< MPISEC_MPI: family for `mpisec exec`; empty: found out
    /// MPISEC_PIPELINE_THRESHOLD: larger messages are pipelined; bytes; 0: by the cores
    std::uint64_t threshold = 0;
    /// MPISEC_SEGMENT: plaintext bytes of a channel segment; 0: by the message's length
    std::uint64_t segment = 0;
    enum class Pipeline : std::uint8_t { automatic, on, off };
    Pipeline pipeline = Pipeline::automatic;  ///< MPISEC_PIPELINE: whether larger messages travel in segments
    int workers = -1;                         ///< MPISEC_WORKERS: engine threads; -1: from the spare cores
    enum class Yield : std::uint8_t { automatic, on, off };
    /// MPISEC_YIELD: a waiting rank gives its core to others; auto: when ranks outnumber cores
    Yield yield = Yield::automatic;
    enum class Progress : std::uint8_t { calls, thread };
    Progress progress = Progress::calls;  ///< MPISEC_PROGRESS: what moves on while the program computes
    enum class SameNode : std::uint8_t { plain, seal, verify, automatic };
    SameNode same_node = SameNode::automatic;  ///< MPISEC_SAME_NODE
    bool same_node_sealed = false;             ///< it is `seal`: every rank counts as a node of its own
    enum class Connections : std::uint8_t { automatic, authenticate, plain };
    Connections connections = Connections::automatic;  ///< MPISEC_CONNECTIONS: of the MPI library
    bool unprotected_allow = false;                    ///< MPISEC_UNPROTECTED=allow|refuse
    bool singleton_allow = false;                      ///< MPISEC_SINGLETON=allow|refuse
    std::string job;                                   ///< MPISEC_JOB; empty: as the launcher says
    double stall_seconds = 60;                         ///< MPISEC_STALL_TIME; 0: never report
    double node_seconds = 20;  ///< MPISEC_NODE_TIME: ranks of a node find each other within it
    double join_seconds = 60;  ///< MPISEC_JOIN_TIME: a spawned or connected world answers within it
    enum class StallAction : std::uint8_t { report, abort, automatic };
    StallAction stall_action = StallAction::automatic;  ///< MPISEC_STALL_ACTION
    std::string stats;                                  ///< MPISEC_STATS: empty, "1", "ranks" or "json:PATH"
    double stats_interval = 0;                          ///< MPISEC_STATS_INTERVAL: 0: at the end only
    std::string trace;                          ///< MPISEC_TRACE: directory of time lines; empty: none
    std::uint64_t rekey_messages = 1ull << 28;  ///< MPISEC_REKEY_MESSAGES per pair and epoch
    std::uint64_t rekey_bytes = 1ull << 38;     ///< MPISEC_REKEY_BYTES per pair and epoch
    std::string tuning;     ///< MPISEC_TUNING: table of algorithms of collectives; empty: built in
    Algorithms algorithm;   ///< MPISEC_<COLLECTIVE>: "auto" (as the table says) or a name; checked by coll
    std::string cache_dir;  ///< MPISEC_CACHE_DIR; default ~/.cache/mpisec (calibration)

    /// Variables that are not at their default, and where each value comes from: "environment" or "file PATH". The last entry counts.
    std::vector<std::pair<std::string, std::string>> origin;
};

/// Reads the environment and the TOML file (MPISEC_CONFIG, default ~/.config/mpisec/config.toml, which may be absent). An unknown MPISEC_
/// variable or TOML key, or a value out of range, is an error that names it and says what is accepted. Sizes take K, M, G suffixes (powers
/// of two); times are in seconds. A variable that is set but empty counts as not set. Variables that begin with MPISEC_LAB_ belong to the
/// lab, two to the OpenSSL provider and one to `mpisec profile`; they are ignored.
Result<Settings> load();

/// One setting as it is in force.
struct Row {
    std::string variable, value, origin;
};
std::vector<Row> rows(const Settings& settings);

/// rows() as text for `mpisec doctor`: a line each, in aligned columns.
std::string describe(const Settings& settings);

}  // namespace mpisec::config
