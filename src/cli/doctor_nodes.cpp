#include "cli/doctor_nodes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <sstream>

#include "aead/aead.hpp"
#include "base/hex.hpp"
#include "base/version.hpp"
#include "cli/detect.hpp"
#include "cli/findings.hpp"
#include "cli/loader.hpp"
#include "cli/places.hpp"
#include "cli/preload.hpp"
#include "cli/say.hpp"
#include "cli/shell_word.hpp"
#include "coll/selection/selection_settings.hpp"
#include "config/calibration_file.hpp"
#include "config/settings.hpp"
#include "config/table.hpp"
#include "keys/hkdf.hpp"
#include "keys/key_file.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace mpisec::cli {
namespace {

// Begins the line of a node. Launchers may put a label in front of it.
constexpr std::string_view mark = "mpisec-node-1\t";
constexpr char separator = '\t';
constexpr std::string_view wrong = "PROBLEM: ";

struct Column {
    enum : std::size_t { node, version, key, mpi, crypto_library, cpu, cipher, settings, count };
};

/// What the ranks of a job must have alike, or may have differently.
enum class Differing : std::uint8_t { is_a_note, is_a_problem, is_a_problem_of_each_setting };

struct ColumnKind {
    const char* title;
    Differing differing;
};
// In the order of the line's fields; a new one goes to the end, so that the lines of other versions are understood.
constexpr std::array<ColumnKind, Column::count> columns = {
    {{"node", Differing::is_a_note},
     {"version", Differing::is_a_problem},
     {"key", Differing::is_a_problem},
     {"mpi", Differing::is_a_note},
     {"crypto library", Differing::is_a_note},
     {"cpu", Differing::is_a_note},
     {"cipher", Differing::is_a_problem},
     {"settings", Differing::is_a_problem_of_each_setting}}};
using Row = std::array<std::string, Column::count>;

std::string problem(const Error& error) {
    return std::string(wrong) + error.message;
}

std::string host() {
    char name[256] = "?";
    gethostname(name, sizeof name - 1);
    return name;
}

std::string key_of_node(const config::Settings& settings) {
    auto key = keys::read_key_file(settings.key_file);
    return key ? keys::fingerprint(*key) : problem(key.error());
}

std::string mpi_of_node(const std::vector<std::string>& command, const std::string& mpi,
                        const config::Settings& settings) {
    if (command.empty()) return "-";
    auto program = find_program(command);
    if (!program) return problem(program.error());
    auto found = detect(*program, command, mpi, settings.mpi);
    if (!found) return problem(found.error());
    if (auto preload = preload_of(*program, shim_path(found->family)); !preload)
        return problem(preload.error());
    for (const LoadedLibrary& library : libraries_of(*program))
        if (family_of_library(std::filesystem::path(library.name).filename().string()) == found->family &&
            !library.path.empty())
            return library.path;
    return found->library.empty() ? std::string(name(found->family)) : found->library;
}

/// The cipher, and the libraries for small and for large messages.
void add_crypto(Row& row, const config::Settings& settings) {
    auto selection = aead::select(settings.aead, config::calibration_path(settings));
    if (!selection) {
        row[Column::cipher] = problem(selection.error());
        return;
    }
    const auto& library = selection->library;
    const std::string small(library.front()->name()), large(library.back()->name());
    row[Column::cipher] = aead::info(selection->cipher).name;
    row[Column::crypto_library] = small == large ? small : small + "…" + large;
}

/// Some digits that differ where the content of MPISEC_TUNING's file does.
std::string table_mark(const config::Settings& settings) {
    config::Settings table_only = settings;
    table_only.algorithm = {};
    std::string text;
    for (const coll::Cpus cpus : {coll::Cpus::own, coll::Cpus::shared})
        if (auto selection = coll::selection_of(table_only, cpus)) text += selection->text();
    const keys::Digest digest = keys::sha256(keys::as_bytes(text));
    return "table-" + hex(std::span(digest).first(4));
}

/// The settings that ranks must agree on, where they are not at their default: "MPISEC_SEGMENT=64K MPISEC_PIPELINE=off".
std::string settings_of_node(const config::Settings& settings) {
    for (const coll::Cpus cpus : {coll::Cpus::own, coll::Cpus::shared})
        if (auto selection = coll::selection_of(settings, cpus); !selection)
            return problem(selection.error());
    std::string text;
    for (const config::Setting& setting : config::table()) {
        std::string value = setting.show(settings);
        if (!setting.must_agree || value == setting.default_value) continue;
        std::ranges::replace(value, ' ', '_');
        text += std::string(setting.variable) + "=" + value + " ";
    }
    if (!settings.tuning.empty()) text += "MPISEC_TUNING=" + table_mark(settings) + " ";
    if (text.empty()) return "default";
    text.pop_back();
    return text;
}

/// What decides how fast messages are sealed.
std::string cpu_of_node() {
    std::string features;
#if defined(__x86_64__)
    // Not __builtin_cpu_supports(), whose table is in a library that not every compiler provides.
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0) features += "aes ";
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        if ((c & bit_VAES) != 0) features += "vaes ";
        if ((b & bit_AVX2) != 0) features += "avx2 ";
        if ((b & bit_AVX512F) != 0) features += "avx512 ";
        if ((c & bit_VPCLMULQDQ) != 0) features += "vpclmulqdq ";
    }
#endif
    if (features.empty()) return "none of AES's";
    features.pop_back();
    return features;
}

/// Everything that the launcher's command wrote to standard output, and its status.
struct Output {
    std::string text;
    int status;
};
Result<Output> output_of(const std::string& line) {
    // NOLINTNEXTLINE(cert-env33-c): a shell is intended; the line is the launcher's, as its user writes it
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(line.c_str(), "r"), pclose);
    if (!pipe) return fail("cannot start " + line);
    std::string text;
    std::array<char, 4096> part;
    while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe.get()))
        text.append(part.data(), got);
    // The text came over the launcher's connections, to which anybody may write: remove all that a terminal would obey.
    for (char& c : text)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) c = '?';
    const int ended = pclose(pipe.release()), status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128;
    if (text.find(mark) == std::string::npos)
        return fail(fmt::format("no node answered; the launcher ended with status {}: {}", status, line));
    return Output{text, status};
}

/// One row for each node, even where several processes report it.
std::vector<Row> rows_in(const std::string& text) {
    std::map<std::string, Row> found;
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
        at += mark.size();
        const std::string line = text.substr(at, text.find('\n', at) - at);
        Row row;
        std::size_t from = 0;
        for (std::string& field : row) {
            const std::size_t end = std::min(line.find(separator, from), line.size());
            field = line.substr(from, end - from);
            from = std::min(end + 1, line.size());
        }
        found.emplace(row[0], row);
    }
    std::vector<Row> rows;
    for (auto& [node, row] : found) rows.push_back(row);
    return rows;
}

/// What most nodes have in a column.
std::string usual(const std::vector<Row>& rows, std::size_t column) {
    std::map<std::string, int> counts;
    for (const Row& row : rows)
        if (!row[column].empty()) ++counts[row[column]];
    std::string best;
    for (const auto& [value, count] : counts)
        if (best.empty() || count > counts[best]) best = value;
    return best;
}

/// The settings in settings_of_node()'s text. What is not among them is at its default.
std::map<std::string, std::string> settings_in(const std::string& text) {
    std::map<std::string, std::string> settings;
    std::istringstream words(text);
    for (std::string word; words >> word;)
        if (const std::size_t equals = word.find('='); equals != std::string::npos)
            settings[word.substr(0, equals)] = word.substr(equals + 1);
    return settings;
}

std::string short_form(const std::string& value) {
    return value.starts_with(wrong) ? "PROBLEM" : value;
}

void print_table(const std::vector<Row>& rows) {
    std::array<std::size_t, columns.size()> width{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        width[i] = std::string_view(columns[i].title).size();
        for (const Row& row : rows) width[i] = std::max(width[i], short_form(row[i]).size());
    }
    for (std::size_t i = 0; i < columns.size(); ++i)
        std::printf("%-*s  ", static_cast<int>(width[i]), columns[i].title);
    std::printf("\n");
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < columns.size(); ++i)
            std::printf("%-*s  ", static_cast<int>(width[i]), short_form(row[i]).c_str());
        std::printf("\n");
    }
}

/// What some nodes have set differently than most; returns how many settings that are.
int print_differing_settings(const std::vector<Row>& rows) {
    const std::string by_default = "at its default";
    std::map<std::string, std::map<std::string, std::string>> of_nodes;
    std::set<std::string> names;
    for (const Row& row : rows) {
        if (row[Column::settings].starts_with(wrong)) continue;
        for (const auto& [name, value] : of_nodes[row[Column::node]] = settings_in(row[Column::settings]))
            names.insert(name);
    }
    int problems = 0;
    for (const std::string& name : names) {
        std::map<std::string, std::vector<std::string>> nodes_with;
        for (const auto& [node, settings] : of_nodes) {
            const auto found = settings.find(name);
            nodes_with[found == settings.end() ? by_default : found->second].push_back(node);
        }
        if (nodes_with.size() < 2) continue;
        const auto most = std::ranges::max_element(nodes_with, {}, [&](const auto& entry) {
            return std::pair(entry.second.size(), entry.first == by_default);
        });
        std::string others;
        for (const auto& [value, nodes] : nodes_with)
            if (value != most->first)
                others +=
                    fmt::format("{}{} on {}", others.empty() ? "" : ", ", value, fmt::join(nodes, ", "));
        std::printf("PROBLEM: %s is %s, and %s elsewhere\n", name.c_str(), others.c_str(),
                    most->first.c_str());
        ++problems;
    }
    return problems;
}

/// Where calls may send in clear, which the command for one node calls a problem, too.
int print_unprotected(const std::vector<Row>& rows) {
    int problems = 0;
    for (const Row& row : rows) {
        if (!settings_in(row[Column::settings]).contains("MPISEC_UNPROTECTED")) continue;
        std::printf("PROBLEM on %s: %s\n", row[Column::node].c_str(), unprotected_is_allowed);
        ++problems;
    }
    return problems;
}

/// Prints sentences below the table; returns how many are problems. Different processors are slower, not wrong.
int print_differences(const std::vector<Row>& rows) {
    int problems = 0;
    for (std::size_t i = Column::node + 1; i < columns.size(); ++i) {
        const std::string most = usual(rows, i);
        std::string others;
        for (const Row& row : rows) {
            if (row[i].starts_with(wrong)) {
                std::printf("PROBLEM on %s: %s\n", row[Column::node].c_str(), row[i].c_str() + wrong.size());
                ++problems;
            } else if (row[i] != most && !row[i].empty() && !most.starts_with(wrong)) {
                others += (others.empty() ? "" : ", ") + row[Column::node];
            }
        }
        if (columns[i].differing == Differing::is_a_problem_of_each_setting)
            problems += print_unprotected(rows) + print_differing_settings(rows);
        else if (!others.empty()) {
            const bool matters = columns[i].differing == Differing::is_a_problem;
            std::printf("%s: another %s on %s than elsewhere (%s)\n", matters ? "PROBLEM" : "note",
                        columns[i].title, others.c_str(), most.c_str());
            problems += matters;
        }
    }
    return problems;
}

}  // namespace

Status print_node_line(const std::vector<std::string>& command, const std::string& mpi) {
    Row row{host(), std::string(version)};
    if (auto settings = config::load()) {
        row[Column::key] = key_of_node(*settings);
        row[Column::mpi] = mpi_of_node(command, mpi, *settings);
        add_crypto(row, *settings);
        row[Column::settings] = settings_of_node(*settings);
    } else {
        row[Column::settings] = problem(settings.error());
    }
    row[Column::cpu] = cpu_of_node();
    std::string line(mark);
    for (std::string& field : row) {
        for (char& c : field)
            if (c == '\n' || c == separator) c = ' ';
        line += field + separator;
    }
    line += '\n';
    std::fputs(line.c_str(), stdout);  // in one write, so that lines of several processes do not mix
    return 0;
}

Status examine_nodes(const std::string& launcher, const std::vector<std::string>& command,
                     const std::string& mpi) {
    std::error_code error;
    std::string line = launcher + " " +
                       shell_word(std::filesystem::read_symlink("/proc/self/exe", error).string()) +
                       " doctor --line";
    if (!mpi.empty()) line += " --mpi " + shell_word(mpi);
    if (!command.empty()) line += " --";
    for (const std::string& word : command) line += " " + shell_word(word);
    auto output = output_of(line);
    if (!output) return complain("doctor", output.error());
    const std::vector<Row> rows = rows_in(output->text);
    print_table(rows);
    int problems = print_differences(rows);
    if (problems == 0 && output->status != 0) {
        std::printf("PROBLEM: the launcher ended with status %d: nodes may be missing from the table\n",
                    output->status);
        ++problems;
    }
    if (problems == 0)
        std::printf("no problem found on %zu node%s\n", rows.size(), rows.size() == 1 ? "" : "s");
    return problems > 0 ? 1 : 0;
}

}  // namespace mpisec::cli
