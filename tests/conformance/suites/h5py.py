"""h5py as its documentation shows it with several ranks, with Debian's h5py for MPI. (h5py's own tests for MPI are four, of opening files.)"""

from pathlib import Path

from harness.description import Program, Suite, here, package_version

PROGRAM = Path(__file__).resolve().parent.parent / "h5py_program.py"


def programs(mpi, place):
    """One program of many datasets."""
    here("/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi")
    return [Program(name="datasets", command=["/usr/bin/python3", PROGRAM, "datasets.h5"]),
            Program(name="datasets, three ranks", command=["/usr/bin/python3", PROGRAM, "datasets.h5"], ranks=3)]


SUITE = Suite(
    name="h5py",
    origin="Debian package python3-h5py-mpi",
    version=package_version("python3-h5py-mpi"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output: digests of what was written and read back, each element of which is compared with what it should be",
)
