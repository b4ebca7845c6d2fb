"""Memory that the ranks of a node share (/dev/shm; each lab node has its own)."""

import re
from pathlib import Path

HERE = Path(__file__).parent
MOST_KIB = 40  # of one persistent collective: two slots and their counters


def test_persistent_collectives(run, compile_mpi):
    """Each takes little of it, and one for which there is none left is an error that the program can go on after."""
    program = compile_mpi(HERE / "shared_memory.c", "mpich-5", flags=["-std=gnu11"])
    result = run([program], nodes=2, ranks=4, mpi="mpich-5").check()
    each = [int(kib) for kib in re.findall(r"^each (\d+) KiB$", result.stdout, re.MULTILINE)]
    assert len(each) == 2 and max(each) <= MOST_KIB, result.stdout
    assert re.findall(r"^limited (.+)$", result.stdout, re.MULTILINE) == ["no memory"] * 4, result.stdout
    assert re.findall(r"^after (\d+)$", result.stdout, re.MULTILINE) == ["6"] * 4, result.stdout
    assert "MPI_Allreduce_init: " in result.stderr and "/dev/shm" in result.stderr, result.stderr
