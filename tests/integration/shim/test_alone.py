"""A process that is alone in its world where the launcher started several is an error, with the PMI to use. No launcher runs here: the
variables that one leaves are set by hand."""

import os
import subprocess
from pathlib import Path

import pytest

from mpisec_lab import find_mpi, places

HERE = Path(__file__).parent
_LAUNCHERS = ("MPISEC_", "OMPI_", "PMI_", "PMIX_", "HYDI_", "MPI_LOCAL", "SLURM_", "LD_PRELOAD")
SRUN = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}
FOREIGN = {"mpich-5": {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, "openmpi-5": {"PMI_SIZE": "2"}}
PMI = {"mpich-5": "--mpi=pmi2", "openmpi-5": "--mpi=pmix"}


@pytest.fixture(scope="module")
def alone(compile_mpi):
    """alone(mpi, environment): what `mpisec exec` of a program in that environment becomes."""

    def alone_(mpi, environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
        program = compile_mpi(HERE / "alone.c", mpi)
        return subprocess.run([places.find_mpisec(), "exec", program], env=clean | find_mpi(mpi).environment | environment, capture_output=True,
                              text=True, timeout=60, check=False)

    return alone_


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_of_several_processes_of_srun(alone, mpi):
    ran = alone(mpi, SRUN)
    assert ran.returncode != 0 and "world of" not in ran.stdout
    assert "srun (SLURM_STEP_NUM_TASKS=4) started 4 processes" in ran.stderr and PMI[mpi] in ran.stderr, ran.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_of_several_processes_of_another_mpiexec(alone, mpi):
    ran = alone(mpi, FOREIGN[mpi])
    assert ran.returncode != 0 and "world of" not in ran.stdout
    assert "started 2 processes" in ran.stderr and "the mpiexec of the program's own MPI" in ran.stderr, ran.stderr


@pytest.mark.parametrize("environment", [SRUN | {"MPISEC_SINGLETON": "allow"}, {"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, {}],
                         ids=["allowed", "batch_script", "by_hand"])
def test_one_that_is_meant_to_be_alone_runs(alone, environment):
    ran = alone("mpich-5", environment)
    assert (ran.returncode, ran.stdout) == (0, "world of 1\n"), ran.stderr
