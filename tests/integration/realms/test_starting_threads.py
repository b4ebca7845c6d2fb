"""M10: threads of a process that start up at the same time, each with a session of its own, one with MPI_Init."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("nodes", [2, 1])
@pytest.mark.parametrize("mode", ["sessions", "init"])
def test_threads_that_start_up_at_once(run, compile_mpi, mode, nodes):
    app = compile_mpi(HERE / "starting_threads.c", "mpich-5", flags=["-std=gnu11", "-pthread"])
    result = run([app, mode, 3], nodes=nodes, ranks=2, mpi="mpich-5", timeout=60)
    assert result.returncode == 0 and result.stdout.count("fine") == 2, result.stdout + result.stderr
