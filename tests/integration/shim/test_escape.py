"""S1: a program that reaches the MPI library past MPIsec does not go unnoticed."""

import subprocess
from pathlib import Path

import pytest

from mpisec_lab.mpis import find_mpi

HERE = Path(__file__).parent


@pytest.mark.parametrize(("mpi", "family", "soname"), [("mpich-5", "mpich", "libmpi.so.12"), ("openmpi-5", "openmpi", "libmpi.so.40")])
def test_a_program_that_escapes_says_so_and_fails(tmp_path, run, mpi, family, soname):
    if not find_mpi(mpi).available():
        pytest.skip(f"{mpi} is not installed")
    program = tmp_path / "escape"
    subprocess.run(["cc", "-o", program, HERE / "escape.c", "-ldl"], check=True)
    library = Path(find_mpi(mpi).compiler_for("c")[0]).parent.parent / "lib" / soname
    plain = run([program, library], nodes=2, ranks=2, mpi=mpi, plain=True)
    assert plain.returncode == 0, plain.stderr
    sealed = run([program, library], nodes=2, ranks=2, mpi=mpi, env={"MPISEC_MPI": family})
    assert sealed.returncode != 0
    assert "NOT encrypted" in sealed.stderr
