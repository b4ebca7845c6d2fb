"""PnetCDF's examples: every way to write and read an array that is distributed over ranks, compiled against Debian's PnetCDF. The files
that they leave are compared byte for byte."""

from harness.description import Program, Suite, package_version
from harness.sources import called, debian_source

# create_from_cdl wants a header file, get_vara the file of another example, pthread threads that Open MPI 4.1 does not grant.
LEFT_OUT = {"create_from_cdl", "get_vara", "pthread"}


def programs(mpi, place):
    """An example each, as PnetCDF's own `make ptests` runs them."""
    examples, found = debian_source("pnetcdf", "examples/C/*") / "examples/C", []
    for source in sorted(examples.glob("*.c")):
        if source.stem in LEFT_OUT:
            continue
        program = place / source.stem
        if not program.exists():
            called(["mpicc.openmpi", "-O1", "-w", "-o", program, source, "-lpnetcdf", "-lm"], place)
        found.append(Program(name=source.stem, command=[program, f"{source.stem}.nc"], outputs=[f"{source.stem}.nc"]))
    return found


SUITE = Suite(
    name="pnetcdf",
    origin="Debian source pnetcdf, package libpnetcdf-dev",
    version=package_version("libpnetcdf-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output but for lines with times, and the files that they write",
    unordered=True,
)
