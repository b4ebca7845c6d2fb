"""MPISEC_PROGRESS=thread (progress_thread.c)."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "progress_thread.c"
THREAD = {"MPISEC_PROGRESS": "thread"}


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_rank_that_computes_is_served(run, compile_mpi, mpi):
    """M5 M10: other ranks' operations are done while the rank calls no MPI; without the thread they wait."""
    app = compile_mpi(SOURCE, mpi)
    served = run([app, "multiple", 30], mpi=mpi, env=THREAD)
    assert served.returncode == 0 and served.stdout.split() == ["served"], served
    waited = run([app, "multiple", 1], mpi=mpi)
    assert waited.returncode == 0 and waited.stdout.split() == ["not", "served"], waited


def test_without_threads_of_the_programs(run, compile_mpi):
    """M10: MPIsec calls MPI from a thread of its own only where MPI was granted for several, and says so where not."""
    said = run([compile_mpi(SOURCE), "single", 1], env=THREAD)
    assert said.returncode == 0 and said.stdout.split() == ["not", "served"], said
    assert said.stderr.count("MPISEC_PROGRESS=thread has no effect") == 1, said.stderr
