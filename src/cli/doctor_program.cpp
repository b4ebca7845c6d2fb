#include "cli/doctor_program.hpp"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "cli/detect.hpp"
#include "cli/launcher.hpp"
#include "cli/loader.hpp"
#include "cli/places.hpp"
#include "cli/preload.hpp"
#include "cli/procedures.hpp"
#include "cli/transports.hpp"

namespace mpisec::cli {
namespace {

bool is_mpi_library(const LoadedLibrary& library) {
    return looks_like_mpi(std::filesystem::path(library.name).filename().string());
}

/// The symbols of MPI that the program and the libraries that it is linked with call.
std::set<std::string> called(const Program& program, const std::vector<LoadedLibrary>& libraries) {
    std::set<std::string> names;
    auto add = [&](const std::string& path) {
        for (const std::string& name : mpi_symbols(path, Symbols::imported)) names.insert(name);
    };
    add(program.executable);
    for (const LoadedLibrary& library : libraries)
        if (!is_mpi_library(library) && !library.path.empty()) add(library.path);
    return names;
}

std::string joined(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

/// Which of the procedures that the program calls are protected, and which would fail across nodes today.
void examine_procedures(const Program& program, const std::vector<LoadedLibrary>& libraries,
                        Findings& findings) {
    std::set<std::string> symbols = called(program, libraries);
    if (program.is_script || program.is_python || symbols.empty()) {
        findings.line(
            "calls",
            "the MPI procedures that it calls cannot be seen from outside; docs/procedures.md lists what is "
            "protected, all others fail with an MPI error that names them");
        return;
    }
    auto table = ProcedureTable::load();
    if (!table) return findings.problem("calls", table.error().message);
    std::map<std::string, std::set<std::string>> by_handling;
    std::map<const ProcedureGroup*, std::set<std::string>> unprotected;
    for (const std::string& symbol : symbols) {
        const ProcedureGroup* group = table->find(symbol);
        if (!group) continue;
        by_handling[group->handling].insert(procedure_of_symbol(symbol));
        if (group->handling == "same-node" || group->handling == "refused") unprotected[group].insert(symbol);
    }
    findings.line("calls", std::to_string(by_handling["sealed"].size()) +
                               " MPI procedures that are sealed, " +
                               std::to_string(by_handling["local"].size()) + " that send nothing");
    for (const auto& [group, names] : unprotected)
        findings.note("calls",
                      joined(names) +
                          (group->handling == "refused" ? " would fail" : " would fail across nodes") +
                          " with an MPI error (" + group->title +
                          (group->later.empty() ? ")" : ", to come with " + group->later + ")"));
}

/// Facts about the MPI library itself that change what MPIsec can see.
void examine_library(const FoundMpi& found, const std::vector<LoadedLibrary>& libraries, Findings& findings) {
    for (const LoadedLibrary& library : libraries)
        if (is_mpi_library(library) && library.path.empty())
            findings.problem(
                "mpi",
                library.name + " is not found by the loader: set LD_LIBRARY_PATH, or load the MPI's module");
    if (found.library.find('/') == std::string::npos) return;
    for (const std::string& symbol : mpi_symbols(found.library, Symbols::defined)) {
        if (procedure_of_symbol(symbol) != "mpi_send" || symbol.starts_with("MPI_Send") ||
            symbol.starts_with("PMPI_Send"))
            continue;
        findings.line("mpi",
                      "the Fortran bindings are inside this library, so calls that it makes to itself pass "
                      "MPIsec, too");
        return;
    }
}

/// Transports that write, or read, where a frame from the network says, unless their connections are authenticated
/// (docs/threat-model.md, "Limits").
void examine_transport(const FoundMpi& found, const std::vector<LoadedLibrary>& libraries,
                       const config::Settings& settings, Findings& findings) {
    auto has = [&](const char* name) {
        return std::ranges::any_of(libraries,
                                   [&](const LoadedLibrary& each) { return each.name.starts_with(name); });
    };
    const bool chosen =
        std::ranges::any_of(std::array{"MPIR_CVAR_CH4_NETMOD", "MPIR_PARAM_CH4_NETMOD", "MPICH_CH4_NETMOD"},
                            [](const char* variable) {
                                const char* value = std::getenv(variable);
                                return value && strcasecmp(value, "ucx") == 0;
                            });
    // MPIsec says "ofi" where both are.
    const bool ucx = has("libucp.so") && (!has("libfabric.so") || chosen);
    const char* transport = ucx ? "UCX" : nullptr;
    if (found.family == Family::openmpi) transport = "Open MPI's TCP transport";
    if (!transport) return;
    if (settings.connections != config::Settings::Connections::plain)
        return findings.line("network",
                             std::string(transport) + ": TCP connections between nodes are authenticated");
    findings.note(
        "network",
        std::string(transport) +
            " obeys frames that are forged on the network, and its connections are not authenticated "
            "(MPISEC_CONNECTIONS=plain): who can write to them can write to the processes' memory, past "
            "MPIsec (docs/threat-model.md, Limits)");
}

/// The library's path where detection only had its name.
FoundMpi with_path(FoundMpi found, const std::vector<LoadedLibrary>& libraries) {
    for (const LoadedLibrary& library : libraries)
        if (!library.path.empty() && found.library.find('/') == std::string::npos &&
            family_of_library(std::filesystem::path(library.name).filename().string()) == found.family)
            found.library = library.path;
    return found;
}

void examine_launcher(const FoundMpi& found, Findings& findings) {
    auto launcher = find_launcher();
    if (!launcher) return findings.problem("launcher", launcher.error().message);
    if (launcher->name.empty())
        return findings.line("launcher", "none in sight: not started by mpiexec or srun");
    findings.line("launcher", launcher->name);
    bool other = launcher->family && *launcher->family != found.family;
    if (other && !(*launcher->family == Family::mpich && found.family == Family::abi))
        findings.problem("launcher", "it belongs to " + std::string(description(*launcher->family)) +
                                         ", the program to " + std::string(description(found.family)) +
                                         ": every rank would be a job of its own");
}

}  // namespace

void examine_program(const std::vector<std::string>& command, const std::string& mpi,
                     const config::Settings& settings, Findings& findings) {
    auto program = find_program(command);
    if (!program) return findings.problem("program", program.error().message);
    findings.line(
        "program",
        program->path + (program->executable == program->path ? "" : ", run by " + program->executable));
    auto detected = detect(*program, command, mpi, settings.mpi);
    if (!detected) return findings.problem("mpi", detected.error().message);

    std::vector<LoadedLibrary> libraries = libraries_of(*program);
    FoundMpi found = with_path(*detected, libraries);
    findings.line("mpi", std::string(description(found.family)) +
                             (found.library.empty() ? "" : ": " + found.library) + " (" + found.why + ")");
    examine_library(found, libraries, findings);
    examine_transport(found, libraries, settings, findings);
    examine_launcher(found, findings);

    if (auto preload = preload_of(*program, shim_path(found.family)); !preload)
        findings.problem("preload", preload.error().message);
    else
        findings.line("preload", *preload);
    examine_procedures(*program, libraries, findings);
    for (const Transport& transport : transports_past_mpi(*program, libraries))
        findings.note("traffic", sentence_about(transport));
}

}  // namespace mpisec::cli
