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


def test_a_program_that_contains_its_mpi_is_not_started(tmp_path, run):
    """With libmpich.a, which no call gets past to a preloaded library: refused by `mpisec exec`, and behind a script by the library."""
    mpich = find_mpi("mpich-4")
    archives = list(Path("/usr/lib").glob("*/libmpich.a"))
    if not mpich.available() or not archives:
        pytest.skip("mpich-4 (Debian's libmpich-dev) is not installed")
    shown = subprocess.run([mpich.compiler_for("c")[0], "-show"], capture_output=True, text=True, check=True).stdout.split()
    includes = [word for word in shown if word.startswith("-I")]
    needed = ["-l:libucp.so.0", "-l:libucs.so.0", "-l:libhwloc.so.15", "-l:libnuma.so.1", "-lm"]
    program, script = tmp_path / "linked", tmp_path / "script"
    subprocess.run(["cc", *includes, HERE / "../lab/marker.c", archives[0], *needed, "-o", program], check=True)
    script.write_text(f"#!/bin/sh\nexec {program} $@\n")
    script.chmod(0o755)
    words = ["STATIC-MARKER-5c", "20"]
    plain = run([program, *words], mpi="mpich-4", plain=True)
    assert plain.returncode == 0, plain.stderr
    for started in (program, script):
        sealed = run([started, *words], mpi="mpich-4", env={"MPISEC_MPI": "mpich"})
        assert sealed.returncode != 0 and "contains an MPI library" in sealed.stderr and "right" not in sealed.stdout, sealed.stderr
