"""M10: threads of a process that start up at the same time, each with a session of its own, one with MPI_Init."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
MPI = "mpich-5"


@pytest.mark.parametrize("slow", [False, True], ids=["", "slow"])
@pytest.mark.parametrize("mode", ["sessions", "init"])
def test_threads_that_start_up_at_once(run, compile_mpi, mode, slow):
    """slow: no thread goes on before what all need is there, however long the MPI library takes to make it."""
    app = compile_mpi(HERE / "starting_threads.c", MPI, flags=["-std=gnu11", "-pthread"])
    library = compile_mpi(HERE / "slow_self.c", MPI, flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"], name="slow_self.so")
    env = {"LD_PRELOAD": library} if slow else {}
    result = run([app, mode, 1], nodes=2, ranks=2, mpi=MPI, env=env, timeout=60)
    assert result.returncode == 0 and result.stdout.count("fine") == 2, result.stdout + result.stderr


def test_threads_that_start_up_at_once_inside_a_node(run, compile_mpi):
    app = compile_mpi(HERE / "starting_threads.c", MPI, flags=["-std=gnu11", "-pthread"])
    result = run([app, "init", 1], nodes=1, ranks=2, mpi=MPI, timeout=60)
    assert result.returncode == 0 and result.stdout.count("fine") == 2, result.stdout + result.stderr
