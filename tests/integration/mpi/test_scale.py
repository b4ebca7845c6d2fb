"""Many nodes: 256 processes on 64 of the lab's. (Open MPI's ranks spin while they wait: so many on two cores hardly move.)"""

from pathlib import Path

import pytest


@pytest.mark.slow
def test_256_processes_on_64_nodes(run, compile_mpi):
    program = compile_mpi(Path(__file__).with_name("scale.c"), "mpich-5")
    result = run([program], nodes=64, ranks=256, mpi="mpich-5", timeout=500)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "256 of 256 right" in result.stdout
