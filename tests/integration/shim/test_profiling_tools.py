"""M13: tools of MPI's profiling interface (MPI standard chapter 15) see the program's calls as they do plain, and what they pass on is sealed."""

import subprocess
from pathlib import Path

import pytest

from mpisec_lab.capture import count
from mpisec_lab.mpis import find_mpi

HERE = Path(__file__).parent


@pytest.fixture
def job(cluster, run, compile_mpi, tmp_path):
    """job(mpi, how, plain): (times the marker is seen, what the tool said) of a program with the tool linked in or preloaded."""

    def make(mpi, how, plain):
        if not find_mpi(mpi).available():
            pytest.skip(f"{mpi} is not installed")
        tool = tmp_path / "libtool.so"
        command = find_mpi(mpi).compiler_for("c")
        subprocess.run([*command, "-shared", "-fPIC", HERE / "profiling_tool.c", "-o", tool], check=True)
        linked = {"object": [str(HERE / "profiling_tool.c")], "library": ["-Wl,--no-as-needed", str(tool), f"-Wl,-rpath,{tmp_path}"], "preloaded": []}[how]
        app = compile_mpi(HERE / "profiled.c", mpi, flags=["-std=gnu11", *linked])
        env = {"LD_PRELOAD": str(tool)} if how == "preloaded" else {}
        with cluster(2).capture(tmp_path / "pcap") as capture:
            result = run([app], nodes=2, ranks=2, mpi=mpi, plain=plain, env=env)
        assert result.returncode == 0, result.stdout + result.stderr
        return count(capture.streams(), b"PROFILED-MARK"), sorted(line for line in result.stdout.splitlines() if line.startswith("tool"))

    return make


@pytest.mark.parametrize("how", ["library", "preloaded", "object"])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4"])
def test_a_tool_sees_what_the_program_calls(job, mpi, how):
    assert job(mpi, how, plain=False) == (0, ["tool: 3 sends, 2 collectives"] * 2)


def test_plain_it_sees_the_same(job):
    seen, said = job("mpich-5", "library", plain=True)
    assert seen == 6 and said == ["tool: 3 sends, 2 collectives"] * 2
