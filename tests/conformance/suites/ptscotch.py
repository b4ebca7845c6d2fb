"""PT-Scotch: its own tests of distributed graphs, compiled against Debian's libraries, and the programs that order and partition graphs.
Threads of each rank call MPI (MPI_THREAD_MULTIPLE)."""

from harness.description import Program, Suite, here, package_version
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

TESTS = ("check", "band", "coarsen", "grow", "induce", "redist")
GRAPHS = ("bump.grf", "bump_b100000.grf")
LARGE = ("m16x16.grf", "bump.grf")
LIBRARIES = ("-lptscotch", "-lscotch", "-lptscotcherr", "-lz", "-lbz2", "-llzma", "-lm", "-lpthread")


def _compiled(test, mpi, place, sources):
    program = place / test
    if not program.exists():
        options = ["-O1", "-w", "-DSCOTCH_PTSCOTCH", "-DCOMMON_PTHREAD", "-DSCOTCH_PTHREAD", "-DSCOTCH_PTHREAD_MPI", "-I/usr/include/scotch",
                   f"-I{sources / 'libscotch'}"]
        called([*find_mpi(mpi).compiler, *options, "-o", program, sources / "check" / f"test_scotch_dgraph_{test}.c", *LIBRARIES], place)
    return program


def programs(mpi, place):
    """Each test with two graphs, and each program."""
    here("/usr/bin/dgord", "/usr/bin/dgpart", "/usr/bin/dgtst")
    sources = debian_source("scotch", "src/check/*", "src/libscotch/*") / "src"
    data, found = sources / "check/data", []
    for test in TESTS:
        for graph in GRAPHS:
            found.append(Program(name=f"{test} {graph}", command=[_compiled(test, mpi, place, sources), graph], files={graph: data / graph}, ranks=3))
    for graph in LARGE:
        files = {graph: data / graph}
        found += [Program(name=f"dgtst {graph}", command=["/usr/bin/dgtst", graph], files=files),
                  # Which ordering and partition they find depends on which thread is faster.
                  Program(name=f"dgord {graph}", command=["/usr/bin/dgord", graph, "order"], files=files),
                  Program(name=f"dgpart {graph}", command=["/usr/bin/dgpart", "4", graph, "parts"], files=files)]
    return found


SUITE = Suite(
    name="ptscotch",
    origin="Debian source scotch, packages ptscotch, libptscotch-dev",
    version=package_version("ptscotch"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="exit status, and what the tests and dgtst say of the graphs on standard output",
    drop=(r"(?i)time",),
    unordered=True,
)
