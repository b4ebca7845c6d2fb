"""Persistent collectives: the memory that they share within a node, and how many there can be."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MOST_KIB = 40  # of one in /dev/shm, which each lab node has for itself: two slots and their counters


def test_in_shared_memory(run, compile_mpi):
    """Each takes little of it, and one for which there is none left is an error that the program can go on after."""
    program = compile_mpi(HERE / "shared_memory.c", "mpich-5", flags=["-std=gnu11"])
    result = run([program], nodes=2, ranks=4, mpi="mpich-5").check()
    each = [int(kib) for kib in re.findall(r"^each (\d+) KiB$", result.stdout, re.MULTILINE)]
    assert len(each) == 2 and max(each) <= MOST_KIB, result.stdout
    assert re.findall(r"^limited (.+)$", result.stdout, re.MULTILINE) == ["no memory"] * 4, result.stdout
    assert re.findall(r"^after (\d+)$", result.stdout, re.MULTILINE) == ["6"] * 4, result.stdout
    assert "MPI_Allreduce_init: " in result.stderr and "/dev/shm" in result.stderr, result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_old_and_new_in_any_order(run, compile_mpi, mpi):
    """However many are made, messages of one are never taken for those of another."""
    program = compile_mpi(HERE / "many_persistent.c", mpi, flags=["-std=gnu11"])
    result = run([program], nodes=2, ranks=2, mpi=mpi, timeout=60).check()
    assert result.stdout.count("right") == 2, result.stdout + result.stderr
