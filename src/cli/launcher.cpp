#include "cli/launcher.hpp"

#include <cstdlib>
#include <cstring>

namespace mpisec::cli {

Result<Launcher> find_launcher() {
    auto set = [](const char* variable) { return std::getenv(variable) != nullptr; };
    bool open_mpi = set("OMPI_COMM_WORLD_RANK");
    bool hydra = set("HYDI_CONTROL_FD") || set("MPI_LOCALRANKID");
    bool pmi = set("PMI_RANK") || set("PMI_FD") || set("PMI_PORT");
    if (open_mpi && hydra)
        return fail(
            "the environment shows two launchers, Open MPI's (OMPI_COMM_WORLD_RANK) and Hydra "
            "(HYDI_CONTROL_FD, MPI_LOCALRANKID); say which MPI the program uses: mpisec exec --mpi "
            "mpich|abi|openmpi, or MPISEC_MPI");
    // An Open MPI started inside a Slurm step inherits the step's PMI variables, so it goes first; one with
    // PMIx variables alone (srun --mpi=pmix, prterun) may be starting any MPI.
    if (open_mpi) return Launcher{"Open MPI's mpiexec (OMPI_COMM_WORLD_RANK)", Family::openmpi};
    if (hydra)
        return Launcher{"Hydra, of MPICH or Intel MPI (HYDI_CONTROL_FD, MPI_LOCALRANKID)", Family::mpich};
    if (pmi) return Launcher{"a PMI launcher (PMI_RANK)", Family::mpich};
    if (set("PMIX_RANK")) return Launcher{"a PMIx launcher (PMIX_RANK)", std::nullopt};
    if (set("SLURM_PROCID") && set("SLURM_STEP_ID")) return Launcher{"srun (SLURM_PROCID)", std::nullopt};
    return Launcher{};
}

bool may_be_rank_0() {
    for (const char* variable : {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"})
        if (const char* rank = std::getenv(variable); rank && std::strcmp(rank, "0") != 0) return false;
    return true;
}

}  // namespace mpisec::cli
