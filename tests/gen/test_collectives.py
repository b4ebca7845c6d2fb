"""The sealed collectives and the rarely used sealed procedures: programs that check every value, on two and on three nodes."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("mpi", ["mpich-5", "mpich-5-abi", "openmpi-5", "mpich-4", "openmpi-4"])
@pytest.mark.parametrize(("nodes", "ranks"), [(2, 2), (3, 5)])
def test_collectives_give_what_mpi_says(compile_mpi, run, mpi, nodes, ranks):
    result = run([compile_mpi(HERE / "collectives.c", mpi), "backwards"], nodes=nodes, ranks=ranks, mpi=mpi, timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "collectives: all right" in result.stdout


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_rarely_used_procedures(compile_mpi, run, mpi):
    result = run([compile_mpi(HERE / "rarely_used.c", mpi)], nodes=2, ranks=4, mpi=mpi)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "rarely used: all right" in result.stdout
