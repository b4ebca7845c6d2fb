// mpisec doctor: what would happen to a job on this machine, before it runs.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "aead/aead.hpp"
#include "cli/commands.hpp"
#include "cli/crypto_report.hpp"
#include "cli/doctor_nodes.hpp"
#include "cli/doctor_program.hpp"
#include "cli/file_systems.hpp"
#include "cli/findings.hpp"
#include "cli/procedures.hpp"
#include "cli/say.hpp"
#include "cli/side_by_side.hpp"
#include "coll/selection/selection_settings.hpp"
#include "config/calibration_file.hpp"
#include "config/settings.hpp"
#include "keys/key_file.hpp"

namespace mpisec::cli {
namespace {

constexpr const char* doctor_examples =
    "  mpisec doctor                        settings, key file, crypto libraries, this machine\n"
    "  mpisec doctor -- ./app               the same for one program: its MPI, what would be protected\n"
    "  mpiexec -n 4 -ppn 1 mpisec doctor -- ./app    on every node, as the job would see it\n\n"
    "  mpisec doctor --nodes \"srun -N4 --ntasks-per-node=1\" -- ./app    a table with a line for each "
    "node\n\n"
    "Exit status 1 when something would keep a job from running protected.";

/// Which library serves which size; one that serves neighbouring size classes is named once for them.
std::string chosen(const aead::Selection& selection) {
    constexpr const char* ends[] = {"up to 1 KiB", "up to 16 KiB"};
    const auto& library = selection.library;
    std::string text = fmt::format("{}: ", aead::info(selection.cipher).name);
    if (library[0] == library[1] && library[1] == library[2])
        return text + fmt::format("{} for messages of every size", library[2]->name());
    for (std::size_t i = 0; i < std::size(ends); ++i)
        if (library[i] != library[i + 1]) text += fmt::format("{} {}, ", library[i]->name(), ends[i]);
    return text + fmt::format("{} above", library[2]->name());
}

void examine_crypto(const config::Settings& settings, Findings& findings) {
    if (!print_crypto_libraries())
        return findings.problem("crypto", "without a crypto library no job can start");
    // The same file as the shim's (src/shim/startup/node_proof.cpp): the job need not measure again what is measured
    // here.
    auto selection = aead::select(settings.aead, config::calibration_path(settings));
    if (!selection) return findings.problem("crypto", selection.error().message);
    findings.line("selected", chosen(*selection));
}

void examine_key(const config::Settings& settings, Findings& findings) {
    auto key = keys::read_key_file(settings.key_file);
    if (!key) return findings.problem("key", key.error().message);
    findings.line("key", settings.key_file + ": usable, fingerprint " + keys::fingerprint(*key) +
                             " (must be the same on all nodes)");
}

void examine_machine(Findings& findings) {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    constexpr rlim_t wanted = 1 << 20;  // keys take 16 KiB at a time
    std::string amount =
        limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
    if (limit.rlim_cur < wanted)
        findings.note(
            "memory",
            "only " + amount + " may be locked (ulimit -l): keys could be written to swap; allow 1024 KiB");
    else
        findings.line("memory", amount + " may be locked: enough to keep keys out of swap");
    findings.line(
        "cores",
        std::to_string(usable_cores()) +
            " logical CPUs may be used here; those that no rank is bound to help to seal large messages");
}

/// Files do not travel in MPI's messages: users of MPI-IO must know what else carries them.
void examine_file_systems(Findings& findings) {
    constexpr std::size_t most_named = 8;
    const auto found = network_file_systems("/proc/self/mounts");
    for (std::size_t i = 0; i < std::min(found.size(), most_named); ++i)
        findings.note("files",
                      found[i].place + " is on a network file system (" + found[i].kind +
                          "): MPIsec does not encrypt what that sends; use its own protection, or a tunnel");
    if (found.size() > most_named)
        findings.note("files",
                      "and " + std::to_string(found.size() - most_named) + " more of network file systems");
    if (const std::string kind = network_file_system_of("."); !kind.empty())
        findings.note("files", "the working directory is on one of them (" + kind + ")");
    else if (found.empty())
        findings.line("files", "no network file system is mounted here, judging by their names");
}

/// "hs1, hs2": the algorithms that the selection's rules name.
std::string algorithms_in_rules(const coll::Selection& selection, coll::Collective collective) {
    std::vector<std::string> names;
    for (const coll::Rule& rule : selection.rules(collective))
        if (std::find(names.begin(), names.end(), rule.algorithm->name) == names.end())
            names.emplace_back(rule.algorithm->name);
    if (names.empty()) names.emplace_back(coll::algorithms(collective).front().name);
    return fmt::format("{}", fmt::join(names, ", "));
}

/// What a site's table says about messages; empty when it says nothing.
std::string cutting_by(const coll::MessageRules& messages) {
    std::string text;
    if (messages.threshold) text = fmt::format("in segments beyond {} bytes", messages.threshold);
    if (!messages.rules.empty())
        text += fmt::format("{}cut by {} {} of that table", text.empty() ? "" : ", ", messages.rules.size(),
                            messages.rules.size() == 1 ? "rule" : "rules");
    return text;
}

void examine_algorithms(const config::Settings& settings, Findings& findings) {
    const auto selection = coll::selection_of(settings);
    const auto where_shared = coll::selection_of(settings, coll::Cpus::shared);
    if (!selection || !where_shared)
        return findings.problem("algorithms", (selection ? where_shared : selection).error().message);
    findings.line(
        "algorithms",
        settings.tuning.empty()
            ? fmt::format("of collectives, as {} rules of the built-in table say", selection->size())
            : fmt::format(
                  "of collectives, as {} says, and the built-in table for calls that it has no rule for",
                  settings.tuning));
    if (const std::string cutting = cutting_by(selection->messages()); !cutting.empty())
        findings.line("", "messages between two ranks: " + cutting);
    for (int i = 0; i < coll::collectives; ++i) {
        const auto collective = static_cast<coll::Collective>(i);
        const auto place = static_cast<std::size_t>(i);
        const bool fixed = settings.algorithm[place] != "auto";
        findings.line("",
                      fmt::format("{}: {}{}", name(collective), algorithms_in_rules(*selection, collective),
                                  fixed ? fmt::format(", by {}", config::algorithm_variables[place]) : ""));
        if (where_shared->rules(collective) != selection->rules(collective))
            findings.line(
                "", fmt::format("{}, where the ranks of a node share one CPU: first {}", name(collective),
                                where_shared->rules(collective).front().algorithm->name));
    }
}

void examine_protection(const config::Settings& settings, Findings& findings) {
    auto table = ProcedureTable::load();
    if (!table) return findings.problem("protected", table.error().message);
    findings.line("protected", std::to_string(table->count("sealed")) + " MPI procedures are sealed, " +
                                   std::to_string(table->count("local")) + " send nothing, " +
                                   std::to_string(table->count("same-node")) +
                                   " work inside a node and fail across nodes, " +
                                   std::to_string(table->count("refused")) + " always fail");
    if (settings.unprotected_allow) findings.problem("protected", unprotected_is_allowed);
}

Status examine(const std::vector<std::string>& command, const std::string& mpi) {
    Findings findings;
    auto settings = config::load();
    if (!settings) {
        findings.problem("settings", settings.error().message);
        return 1;
    }
    if (!command.empty()) examine_program(command, mpi, *settings, findings);
    examine_key(*settings, findings);
    examine_crypto(*settings, findings);
    examine_machine(findings);
    examine_file_systems(findings);
    examine_protection(*settings, findings);
    examine_algorithms(*settings, findings);
    std::printf("\nsettings in force\n%s\n", config::describe(*settings).c_str());
    if (findings.problems() > 0)
        std::printf("%d problem%s: see PROBLEM above\n", findings.problems(),
                    findings.problems() == 1 ? "" : "s");
    else
        std::printf("no problem found%s\n", findings.notes() > 0 ? "; see the notes above" : "");
    return findings.problems() > 0 ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Status& status) {
    CLI::App* doctor = app.add_subcommand("doctor", "Tell what would be protected, and what is missing");
    doctor->footer(doctor_examples);
    auto mpi = std::make_shared<std::string>();
    auto command = std::make_shared<std::vector<std::string>>();
    doctor->add_option("--mpi", *mpi, "MPI family of the program, as for mpisec exec");
    doctor->add_option("PROGRAM", *command, "the program, with its arguments, as for mpisec exec");
    auto nodes = std::make_shared<std::string>();
    auto line = std::make_shared<bool>(false);
    doctor
        ->add_option(
            "--nodes", *nodes,
            "a launcher with its options, in quotes, that starts one process on each node of the job: "
            "prints one table of all nodes, and what differs")
        ->type_name("LAUNCHER");
    doctor->add_flag("--line", *line, "what --nodes runs on each node: one line about it");
    doctor->positionals_at_end();
    doctor->callback([=, &status] {
        if (*line)
            status = print_node_line(*command, *mpi);
        else
            status = nodes->empty() ? examine(*command, *mpi) : examine_nodes(*nodes, *command, *mpi);
    });
}

}  // namespace mpisec::cli
