#include "shim/startup/job_name.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/small_file.hpp"
#include "keys/hkdf.hpp"
#include "shim/startup/node_id.hpp"

namespace mpisec::shim {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

/// The argument after `option` in a command line of /proc.
std::string argument_after(const std::string& command, const std::string& option) {
    const std::string key = '\0' + option + '\0';
    const std::size_t found = command.find(key);
    if (found == std::string::npos) return {};
    const std::size_t begin = found + key.size();
    return command.substr(begin, command.find('\0', begin) - begin);
}

/// The host and port on which mpiexec listens: all proxies of a job are told the same, and no two mpiexecs on a host have one port.
std::string name_from_hydra(const std::string& server) {
    const std::string port = argument_after(server, "--control-port");
    if (!port.empty()) return "hydra " + port;
    const std::string intel = variable("I_MPI_HYDRA_UUID");
    return intel.empty() ? "" : "intel " + intel;
}

/// No name for a heterogeneous job, whose parts have numbers of their own.
std::string name_from_slurm(const std::string& server) {
    if (!server.starts_with("slurmstepd") || !variable("SLURM_HET_SIZE").empty()) return {};
    const std::string job = variable("SLURM_JOB_ID"), step = variable("SLURM_STEP_ID");
    return job.empty() || step.empty() ? "" : "slurm " + job + "." + step;
}

std::string name_from_pmix() {
    const std::string name = variable("PMIX_NAMESPACE");
    return name.empty() ? "" : "pmix " + name;
}

/// The family's own launcher comes first: another launcher's variables may have been inherited, and not on all nodes.
std::string name_by_launcher() {
    // Of a process on this machine.
    const std::string server = read_small_file(("/proc/" + pmi_server() + "/cmdline").c_str());
#ifdef OPEN_MPI
    const std::string names[] = {name_from_pmix(), name_from_hydra(server), name_from_slurm(server)};
#else
    const std::string names[] = {name_from_hydra(server), name_from_slurm(server), name_from_pmix()};
#endif
    const auto* found = std::ranges::find_if(names, [](const std::string& name) { return !name.empty(); });
    return found == std::end(names) ? "" : *found;
}

}  // namespace

JobMark job_mark(const std::string& given) {
    const std::string name = given.empty() ? name_by_launcher() : "given " + given;
    if (name.empty()) return {};
    keys::Sha256 hash;
    hash.update(keys::as_bytes("mpisec job")).update(keys::as_bytes(name));
    keys::Digest digest;
    hash.finish(digest.data());
    JobMark mark;
    std::copy_n(digest.begin(), mark.size(), mark.begin());
    return mark;
}

}  // namespace mpisec::shim
