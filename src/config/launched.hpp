// What the environment says about how many processes the launcher started: when the launcher started several, and a process is alone in its
// MPI_COMM_WORLD, it has not found the others, and would compute everything by itself.
#pragma once

#include <cstdint>
#include <string>

namespace mpisec::config {

/// The processes of this one's job, as the launcher counts them.
struct Launched {
    int processes = 1;
    std::string by;  ///< what says so: "srun (SLURM_STEP_NUM_TASKS=4)"; empty when nothing does
};

enum class PmiFamily : std::uint8_t { mpich, openmpi };

/// Where the family's own launcher can be seen, it alone is believed: mpiexec inside a job of Slurm may start one process, whatever Slurm
/// started.
Launched launched_processes(PmiFamily family);

/// Why a process whose world has only this process does not know those that were launched with it, and what to do: a sentence, which is
/// empty when all is well.
std::string alone_in_world(PmiFamily family, const Launched& launched);

}  // namespace mpisec::config
