"""p4est's own tests (forests of octrees: balance, partition, ghost layers, node numberings, files), compiled against Debian's library."""

from harness.description import Program, Suite, package_version
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

# "2" and "3" stand for the two- and the three-dimensional one. The others test one rank, or take a minute and more.
TESTS = ("balance2", "balance3", "balance_seeds3", "comm", "conn_reduce2", "ghost2", "ghost3", "iterate3", "lnodes2", "lnodes3", "load2",
         "loadsave2", "loadsave3", "nodes2", "partition2", "partition3", "partition_corr3", "plex2", "plex3", "replace3", "search2",
         "subcomm2", "wrap2", "wrap3")


def programs(mpi, place):
    """One program per test."""
    sources, found = debian_source("p4est", "test/*") / "test", []
    for test in TESTS:
        program = place / test
        if not program.exists():
            called([*find_mpi(mpi).compiler, "-O1", "-w", "-o", program, sources / f"test_{test}.c", "-lp4est", "-lsc", "-lz", "-lm"], place)
        found.append(Program(name=test, command=[program]))
    return found


SUITE = Suite(
    name="p4est",
    origin="Debian source p4est, package libp4est-dev",
    version=package_version("libp4est-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="exit status, and standard output but for lines with times: numbers of octants, levels, checksums of forests",
    drop=(r"(?i)time|seconds",),
    unordered=True,
)
