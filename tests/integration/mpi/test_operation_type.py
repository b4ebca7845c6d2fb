"""A program's own operation sees the datatype that the program gave (PETSc compares it with its own)."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "openmpi-4", "impi"])
def test_own_operations_get_the_programs_type(compile_mpi, run, mpi):
    """M8: and MPI_Type_dup is not used in between, which would call the attributes' copy functions."""
    result = run([compile_mpi(HERE / "operation_type.c", mpi)], nodes=2, ranks=3, mpi=mpi)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("wrong type 0 times, attributes copied 0 times, 0 wrong values") == 3
    assert ": called" in result.stdout
