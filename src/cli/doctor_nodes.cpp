#include "cli/doctor_nodes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "aead/aead.hpp"
#include "base/version.hpp"
#include "cli/detect.hpp"
#include "cli/loader.hpp"
#include "cli/places.hpp"
#include "cli/preload.hpp"
#include "cli/say.hpp"
#include "config/settings.hpp"
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

// The columns, in the order of the line's fields. The first names the node, so it may differ.
constexpr std::array columns = {"node", "version", "key", "mpi", "crypto library", "cpu"};
using Row = std::array<std::string, columns.size()>;

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
    auto program = find_program(command[0]);
    if (!program) return problem(program.error());
    auto found = detect(*program, {command.begin() + 1, command.end()}, mpi, settings.mpi);
    if (!found) return problem(found.error());
    auto shim = shim_path(found->family);
    if (!shim) return problem(shim.error());
    if (auto preload = preload_with(*shim, {}, ""); !preload) return problem(preload.error());
    for (const LoadedLibrary& library : libraries_of(*program))
        if (family_of_library(std::filesystem::path(library.name).filename().string()) == found->family &&
            !library.path.empty())
            return library.path;
    return found->library.empty() ? std::string(name(found->family)) : found->library;
}

/// Cipher and library for small and for large messages.
std::string crypto_of_node(const config::Settings& settings) {
    const std::string remembered = settings.cache_dir.empty() ? "" : settings.cache_dir + "/calibration.json";
    auto selection = aead::select(settings.aead, remembered);
    if (!selection) return problem(selection.error());
    const auto& library = selection->library;
    const std::string small(library.front()->name()), large(library.back()->name());
    return std::string(aead::info(selection->cipher).name) + " " +
           (small == large ? small : small + "…" + large);
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
Result<std::string> output_of(const std::string& line) {
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
    const int status = pclose(pipe.release());
    if (text.find(mark) == std::string::npos)
        return fail(fmt::format("no node answered; the launcher ended with status {}: {}",
                                WIFEXITED(status) ? WEXITSTATUS(status) : 128, line));
    return text;
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
    for (const Row& row : rows) ++counts[row[column]];
    std::string best;
    for (const auto& [value, count] : counts)
        if (best.empty() || count > counts[best]) best = value;
    return best;
}

std::string short_form(const std::string& value) {
    return value.starts_with(wrong) ? "PROBLEM" : value;
}

void print_table(const std::vector<Row>& rows) {
    std::array<std::size_t, columns.size()> width{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        width[i] = std::string_view(columns[i]).size();
        for (const Row& row : rows) width[i] = std::max(width[i], short_form(row[i]).size());
    }
    for (std::size_t i = 0; i < columns.size(); ++i)
        std::printf("%-*s  ", static_cast<int>(width[i]), columns[i]);
    std::printf("\n");
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < columns.size(); ++i)
            std::printf("%-*s  ", static_cast<int>(width[i]), short_form(row[i]).c_str());
        std::printf("\n");
    }
}

/// Prints sentences below the table; returns how many are problems. Different processors are slower, not wrong.
int print_differences(const std::vector<Row>& rows) {
    int problems = 0;
    for (std::size_t i = 1; i < columns.size(); ++i) {
        const std::string most = usual(rows, i);
        std::string others;
        for (const Row& row : rows) {
            if (row[i].starts_with(wrong)) {
                std::printf("PROBLEM on %s: %s\n", row[0].c_str(), row[i].c_str() + wrong.size());
                ++problems;
            } else if (row[i] != most && !most.starts_with(wrong)) {
                others += (others.empty() ? "" : ", ") + row[0];
            }
        }
        if (others.empty()) continue;
        const bool matters =
            std::string_view(columns[i]) == "version" || std::string_view(columns[i]) == "key";
        std::printf("%s: another %s on %s than elsewhere (%s)\n", matters ? "PROBLEM" : "note", columns[i],
                    others.c_str(), most.c_str());
        problems += matters;
    }
    return problems;
}

std::string shell_word(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

}  // namespace

Status print_node_line(const std::vector<std::string>& command, const std::string& mpi) {
    Row row{host(), std::string(version)};
    if (auto settings = config::load()) {
        row[2] = key_of_node(*settings);
        row[3] = mpi_of_node(command, mpi, *settings);
        row[4] = crypto_of_node(*settings);
    } else {
        row[2] = problem(settings.error());
    }
    row[5] = cpu_of_node();
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
    std::string line = launcher + " " + shell_word(std::filesystem::read_symlink("/proc/self/exe", error)) +
                       " doctor --line";
    if (!mpi.empty()) line += " --mpi " + shell_word(mpi);
    if (!command.empty()) line += " --";
    for (const std::string& word : command) line += " " + shell_word(word);
    auto text = output_of(line);
    if (!text) return complain("doctor", text.error());
    const std::vector<Row> rows = rows_in(*text);
    print_table(rows);
    const int problems = print_differences(rows);
    if (problems == 0)
        std::printf("no problem found on %zu node%s\n", rows.size(), rows.size() == 1 ? "" : "s");
    return problems > 0 ? 1 : 0;
}

}  // namespace mpisec::cli
