// What the environment tells about how many processes the launcher started: a process that MPI leaves alone where the launcher started
// several has not found the others, and would compute everything by itself.
#pragma once

#include <cstdint>
#include <string>

namespace mpisec::config {

/// The processes of this one's job as the launcher counts them.
struct Launched {
    int processes = 1;
    std::string by;  ///< what says so: "srun (SLURM_STEP_NUM_TASKS=4)"; empty when nothing does
};

enum class PmiFamily : std::uint8_t { mpich, openmpi };

/// The family's own launcher is believed alone, where it is in sight: mpiexec inside a job of Slurm may start one process, whatever Slurm
/// started.
Launched launched_processes(PmiFamily family);

/// Why a process of a world of one does not know those that were launched with it, and what to do: a sentence, which is empty when all is
/// well.
std::string alone_in_world(PmiFamily family, const Launched& launched);

}  // namespace mpisec::config
