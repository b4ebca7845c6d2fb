"""Boost.MPI's own tests, compiled against Debian's library."""

from harness.description import Missing, Program, Suite, package_version
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

TESTS = ("all_gather_test", "all_reduce_test", "all_to_all_test", "broadcast_test", "broadcast_stl_test", "gather_test", "graph_topology_test",
         "groups_test", "nonblocking_test", "pointer_test", "reduce_test", "ring_test", "scan_test", "scatter_test", "sendrecv_test",
         "skeleton_content_test", "wait_any_test", "wait_all_vector_test", "block_nonblock_test", "non_blocking_any_source")
TWO = ("broadcast_stl_test", "pointer_test", "wait_all_vector_test", "block_nonblock_test")  # the ranks that Jamfile.v2 gives them


def programs(mpi, place):
    """One program per test that compiles."""
    home, found = debian_source("boost1.74", "libs/mpi/test/*") / "libs/mpi/test", []
    for test in TESTS:
        program = place / test
        if not program.exists():
            try:
                called([*find_mpi(mpi).compiler_for("c++"), "-O0", "-w", "-o", program, home / f"{test}.cpp", "-lboost_mpi", "-lboost_serialization"], place)
            except Missing as problem:
                print(f"boost_mpi: {test} does not compile: {str(problem)[-200:]}")
                continue
        found.append(Program(name=test, command=[program], ranks=2 if test in TWO else 4))
    return found


SUITE = Suite(
    name="boost_mpi",
    origin="Debian source boost1.74, package libboost-mpi-dev",
    version=package_version("libboost-mpi1.74-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="exit status and the verdict of Boost.Test on standard output",
    keep=(r"No errors|error|assert|fail",),
    unordered=True,
)
