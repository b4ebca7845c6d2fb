#include "config/launched.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace mpisec::config {
namespace {

struct Source {
    const char* variable;
    const char* launcher;
};

// Inside a batch script SLURM_NTASKS is set too, although what runs there is one process: only a step's count is a count of processes.
constexpr Source hydra{"PMI_SIZE", "a PMI launcher"}, open_mpi{"OMPI_COMM_WORLD_SIZE", "Open MPI's mpiexec"},
    slurm{"SLURM_STEP_NUM_TASKS", "srun"};

/// 0 processes where the variable is not set, or is not a number.
Launched read(const Source& source) {
    const char* text = std::getenv(source.variable);
    int count = 0;
    if (text) std::from_chars(text, text + std::strlen(text), count);
    if (count < 1) return {0, ""};
    return {count, fmt::format("{} ({}={})", source.launcher, source.variable, count)};
}

bool is_set(const char* variable) {
    return std::getenv(variable) != nullptr;
}

}  // namespace

Launched launched_processes(PmiFamily family) {
    const bool is_open_mpi = family == PmiFamily::openmpi;
    if (Launched own = read(is_open_mpi ? open_mpi : hydra); own.processes > 0) return own;
    for (const Source& source : std::array{is_open_mpi ? hydra : open_mpi, slurm})
        if (Launched found = read(source); found.processes > 0) return found;
    return {};
}

std::string alone_in_world(PmiFamily family, const Launched& launched) {
    if (launched.processes <= 1) return {};
    const bool is_open_mpi = family == PmiFamily::openmpi;
    const bool by_srun =
        is_set("SLURM_STEP_NUM_TASKS") && !is_set("OMPI_COMM_WORLD_SIZE") && !is_set("HYDI_CONTROL_FD");
    std::string what_to_do;
    if (by_srun && is_open_mpi)
        what_to_do = "Open MPI finds them through PMIx: srun --mpi=pmix";
    else if (by_srun)
        what_to_do = "MPICH and its relatives find them through PMI-2: srun --mpi=pmi2";
    else
        what_to_do = "Use the mpiexec of the program's own MPI";
    return fmt::format(
        "{} started {} processes, but MPI_COMM_WORLD has this one alone: {} did not find the others, and "
        "each would do the whole work by "
        "itself. {}. If every process is meant to be a job of its own, "
        "set MPISEC_SINGLETON=allow.",
        launched.by, launched.processes, is_open_mpi ? "Open MPI" : "the MPI library", what_to_do);
}

}  // namespace mpisec::config
