"""mpisec doctor and mpisec profile preload, and refuse, what mpisec exec does."""

import re
import subprocess
from pathlib import Path

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)

from mpisec_lab import find_mpi

SOURCE = Path(__file__).with_name("preloaded.c")


@pytest.fixture
def linked_with_a_tool(tmp_path):
    """A program that is linked with a tool of MPI's profiling interface, and prints LD_PRELOAD."""
    (tmp_path / "tool.c").write_text("#include <mpi.h>\nint MPI_Finalize(void) { return PMPI_Finalize(); }\n")
    (tmp_path / "main.c").write_text("""#include <mpi.h>
        #include <stdio.h>
        #include <stdlib.h>
        int main(int c, char **v) { puts(getenv("LD_PRELOAD")); MPI_Init(&c, &v); return MPI_Finalize(); }""")
    mpicc = find_mpi("mpich-5").compiler_for("c")
    subprocess.run([*mpicc, "-shared", "-fPIC", tmp_path / "tool.c", "-o", tmp_path / "libtool.so"], check=True)
    subprocess.run([*mpicc, tmp_path / "main.c", "-o", tmp_path / "main", f"-L{tmp_path}", "-ltool", f"-Wl,-rpath,{tmp_path}"], check=True)
    return tmp_path / "main", tmp_path / "libtool.so"


def test_doctor_and_profile_preload_as_exec_does(mpisec, linked_with_a_tool):
    app, tool = linked_with_a_tool
    preload = mpisec("exec", "--environment", app).stdout.strip().removeprefix("LD_PRELOAD=")
    assert preload.startswith(f"{tool}:") and preload.endswith("/libmpisec-mpich.so")
    assert re.search(rf"^preload +{re.escape(preload)}$", mpisec("doctor", "--", app).stdout, re.MULTILINE)
    assert mpisec("profile", "--", app).stdout.splitlines()[0] == preload.replace("libmpisec-", "libmpisec-profile-")


def test_doctor_and_profile_refuse_what_exec_refuses(mpisec, compile_mpi):
    app = compile_mpi(SOURCE, "mpich-5")
    behind = ("--", "env", "apptainer", "exec", "image.sif", app)
    assert re.search(r"^program +PROBLEM: apptainer starts a program in a container", mpisec("doctor", *behind).stdout, re.MULTILINE)
    assert "apptainer starts a program in a container" in mpisec("profile", *behind).stderr
    preload = mpisec("exec", "--environment", "--mpi", "openmpi", app).stdout.strip().removeprefix("LD_PRELOAD=")
    line = mpisec("doctor", "--line", "--", app, env={"LD_PRELOAD": preload}).stdout
    assert f"PROBLEM: LD_PRELOAD already has {preload}" in line, line
