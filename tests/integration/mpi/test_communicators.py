"""M11: a program gets as many communicators as without MPIsec, but for those that MPIsec keeps for itself."""

import re
from pathlib import Path

import pytest
from mpi_programs import YIELD, build


def duplicates(run, compile_mpi, plain):
    """How many duplicates of MPI_COMM_WORLD there are to be had."""
    app = build(compile_mpi, "mpich-5", "duplicates.c", ["harness.c"])
    result = run([app], nodes=2, ranks=2, mpi="mpich-5", plain=plain, timeout=120, env=YIELD)
    found = re.findall(r"^(\d+) duplicates", result.stdout, re.MULTILINE)
    assert result.returncode == 0 and found, result.stdout[-2000:] + result.stderr[-3000:]
    return int(found[0])


def test_as_many_duplicates(run, compile_mpi):
    """M11: MPICH has some 2,000 contexts: a communicator takes one, not two. Open MPI 5 has no limit that is reached in a second or two: it gives all 5,000
    that the program asks for, plain and sealed."""
    plain, sealed = duplicates(run, compile_mpi, True), duplicates(run, compile_mpi, False)
    assert plain > 1000 and sealed >= 0.99 * plain, (plain, sealed)


def test_freed_with_messages_under_way(run, compile_mpi):
    """M11: a communicator with an error handler of its own leaves nothing behind."""
    app = compile_mpi(Path(__file__).with_name("heirs.c"), "mpich-5", flags=["-std=gnu11"])
    result = run([app], nodes=2, ranks=2, mpi="mpich-5", timeout=60).check()
    assert result.stdout.count("2500 rounds right") == 2, result.stdout + result.stderr


def test_neighbors_in_any_order(run, compile_mpi):
    """M5: long blocks along the edges of any graph. (MPICH's long sends end before they are received.)"""
    app = compile_mpi(Path(__file__).with_name("crossed_neighbors.c"), "openmpi-5", flags=["-std=gnu11"])
    result = run([app], nodes=4, ranks=4, mpi="openmpi-5", timeout=60).check()
    assert result.stdout.count("right") == 4, result.stdout + result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_all_ranks_hear_of_a_wrong_edge(run, compile_mpi, mpi):
    """S8: of a rank that does not exist, which one rank has named: none waits for it, and each gets its error."""
    app = compile_mpi(Path(__file__).with_name("wrong_edge.c"), mpi, flags=["-std=gnu11"])
    result = run([app], nodes=2, ranks=4, mpi=mpi, timeout=60)
    assert result.returncode == 0 and result.stdout.count("MPI_ERR_RANK, then right") == 4, result.stdout + result.stderr
