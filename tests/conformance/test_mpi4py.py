"""mpi4py's own test suite: whatever passes plain passes sealed, or exceptions.txt says which refused
procedure it uses (issue, "Show"; M13).

CONFORMANCE_NODES=4 runs every job with one rank on each of so many nodes."""

import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
COLLECTIVES = ["test_cco_buf", "test_cco_vec", "test_cco_obj", "test_cco_buf_inter", "test_cco_vec_inter", "test_cco_obj_inter",
               "test_cco_nb_buf", "test_cco_nb_vec", "test_cco_ngh_buf", "test_cco_ngh_obj", "test_cco_pr_buf",
               "test_cco_pr_vec", "test_cco_pr_ngh_buf", "test_op", "test_exceptions"]
# name: (nodes, ranks, modules). What moves many buffers with one rank per node, so that no core is fought for.
JOBS = {
    "buffers": (2, 2, ["test_p2p_buf", "test_p2p_buf_matched", "test_msgspec"]),
    "others": (2, 4, ["test_p2p_obj", "test_p2p_obj_matched", "test_request", "test_status", "test_msgzero", "test_grequest", "test_comm",
                      "test_comm_topo", "test_comm_inter"]),
    "collectives": (2, 2, COLLECTIVES),
    "collectives of four": (4, 4, COLLECTIVES),
    "rest": (2, 2, None),  # all modules that are in no other job
}
# Plain MPICH keeps a core while it waits: four ranks on two cores take minutes.
CASES = [(mpi, job) for mpi in ("mpich-5", "openmpi-5") for job in JOBS if (mpi, job) != ("mpich-5", "collectives of four")]


def version_of(python):
    """The version of the interpreter's mpi4py."""
    return subprocess.run([python, "-c", "import mpi4py; print(mpi4py.__version__)"], capture_output=True, text=True,
                          check=True).stdout.strip()


def suite_of(version):
    """The directory test/ of mpi4py's source distribution, fetched from PyPI once."""
    home = ROOT / ".deps" / f"mpi4py-{version}"
    if (home / "test" / "mpiunittest.py").exists():
        return home / "test"
    home.mkdir(parents=True, exist_ok=True)
    pip = [home / "venv/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    subprocess.run([*pip, "install", "pip>=26"], check=True)  # older ones do not build the sdist's metadata
    subprocess.run([*pip, "download", "--no-binary", "mpi4py", "--no-deps", "--dest", home, f"mpi4py=={version}"], check=True)
    with tarfile.open(home / f"mpi4py-{version}.tar.gz") as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 of Debian 12 has none
        archive.extractall(home, [member for member in archive if "/test/" in member.name], **safely)
    shutil.move(home / f"mpi4py-{version}" / "test", home / "test")
    shutil.rmtree(home / "venv")
    return home / "test"


def exceptions():
    """[(pattern of test names, how, refused procedure)] of exceptions.txt."""
    lines = (HERE / "exceptions.txt").read_text().splitlines()
    return [tuple(line.split()) for line in lines if line and not line.startswith("#")]


def hanging():
    """Patterns of the tests that are not run sealed."""
    return [pattern for pattern, how, _ in exceptions() if how == "skip"]


def rest(suite):
    """The modules that are in no job, but for those of which all is refused."""
    listed = {module for _, _, modules in JOBS.values() for module in modules or []}
    modules = sorted(path.stem for path in suite.glob("test_*.py"))
    return [module for module in modules if module not in listed and f"{module}.*" not in hanging()]


@pytest.fixture(scope="module")
def outcomes(run, mpi_python, tmp_path_factory):
    """outcomes(mpi, plain): {test: what became of it}; of the ranks that differ, the one that did not pass counts."""

    def get(mpi, plain, nodes, ranks, modules):
        if "CONFORMANCE_NODES" in os.environ:
            nodes = ranks = int(os.environ["CONFORMANCE_NODES"])
        python = mpi_python(mpi)
        prefix = tmp_path_factory.mktemp(mpi) / ("plain" if plain else "sealed")
        suite = suite_of(version_of(python))
        command = [python, HERE / "suite.py", suite, prefix, *(modules or rest(suite))]
        env = {"OMPI_MCA_mpi_yield_when_idle": "1", "SUITE_SKIP": "" if plain else " ".join(hanging())}
        result = run(command, nodes=nodes, ranks=ranks, mpi=mpi, plain=plain, timeout=240, env=env)
        last = {path.name: path.read_text().splitlines()[-1:] for path in prefix.parent.glob("*.log")}
        assert result.returncode == 0, f"returncode {result.returncode}, last tests {last}\n{result.stderr[-3000:]}"
        merged = {}
        for rank in range(ranks):
            for test, outcome in json.loads(Path(f"{prefix}.{rank}").read_text()).items():
                if merged.get(test, "ok") in ("ok", "skipped"):
                    merged[test] = outcome
        return merged

    return get


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mpi", "job"), CASES)
def test_what_passes_plain_passes_sealed(outcomes, mpi, job):
    """M3 M6 M8 M9 M13: mpi4py's whole suite."""
    plain, sealed = outcomes(mpi, True, *JOBS[job]), outcomes(mpi, False, *JOBS[job])
    passing = [test for test, outcome in plain.items() if outcome == "ok"]
    assert len(passing) > 150, "mpi4py's suite ran hardly any test"
    broken = {test: sealed.get(test, "was not run") for test in passing if sealed.get(test) != "ok"}
    for test, outcome in list(broken.items()):
        for pattern, how, procedure in exceptions():
            if fnmatch.fnmatch(test, pattern) and (how == "skip" or f"{procedure} is refused" in outcome or f"{procedure}_c is refused" in outcome or how == "fails"):
                del broken[test]
                break
    assert not broken, f"{len(broken)} of {len(passing)} tests pass plain and fail sealed:\n" + "\n".join(
        f"{test}: {outcome}" for test, outcome in sorted(broken.items())[:40])
