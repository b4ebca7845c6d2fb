"""HDF5's parallel example: slabs of a file that all ranks have open."""

from harness.description import Program, Suite, package_version
from harness.sources import called, debian_source


def programs(mpi, place):
    """The example of the sources, writing and reading in slabs."""
    program = place / "ph5example"
    if not program.exists():
        called(["h5pcc.openmpi", "-O1", "-w", "-o", program, debian_source("hdf5", "examples/*") / "examples/ph5example.c"], place)
    return [Program(name="ph5example", command=[program, "-f", "."]), Program(name="ph5example -c", command=[program, "-c", "-f", "."])]


SUITE = Suite(
    name="hdf5",
    origin="Debian source hdf5, package libhdf5-openmpi-dev",
    version=package_version("libhdf5-openmpi-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output: “PHDF5 tests completed with no errors”",
    unordered=True,
)
