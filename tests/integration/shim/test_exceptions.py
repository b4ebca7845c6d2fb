"""C++ exceptions that procedures of the program's throw reach the program."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "sealed"])
@pytest.mark.parametrize("mpi", ["mpich-5", "mpich-4", "openmpi-5"])
def test_exceptions_pass(compile_mpi, run, mpi, plain):
    result = run([compile_mpi(HERE / "throwing.cc", mpi)], nodes=2, ranks=2, mpi=mpi, plain=plain)
    assert result.returncode == 0, result.stdout + result.stderr
    assert sorted(result.stdout.splitlines()) == [f"rank {rank}: caught 1 2 3 4, goes on" for rank in range(2)]
