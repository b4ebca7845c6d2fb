"""mpi4py's own test suite, of the version that the lab's interpreters have. tests/conformance/test_mpi4py.py runs it too."""

import json
import subprocess
from functools import partial
from pathlib import Path

from harness.description import Case, Program, Suite
from harness.jobs import explanation
from harness.sources import ROOT, pypi_source

from mpisec_lab.mpis import find_mpi

HERE = Path(__file__).resolve().parent.parent
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
    "windows": (2, 2, ["test_rma", "test_rma_nb", "test_win", "test_util_sync"]),
    "files": (2, 2, ["test_file", "test_io"]),
    "spawn": (2, 2, ["test_spawn"]),
    "fault tolerance": (2, 2, ["test_ulfm"]),
    "futures": (2, 2, ["test_futures"]),  # each rank's pools are worlds that it spawns
    "rest": (2, 2, None),  # all modules that are in no other job
}
# Where the job's tests are; the others are in test/.
DEMOS = {"futures": "demo/futures"}
# Open MPI 5 does not spawn across nodes, plain or sealed, and counts fault tolerance only when it is asked for.
NOT_ON = {("openmpi-5", "futures"), ("openmpi-5", "spawn")}
LAUNCHER = {("openmpi-5", "fault tolerance"): ("--with-ft", "ulfm")}


def version_of(mpi):
    """The version of the interpreter's mpi4py."""
    return subprocess.run([find_mpi(mpi).python, "-c", "import mpi4py; print(mpi4py.__version__)"], capture_output=True, text=True,
                          check=True).stdout.strip()


def directory(mpi, part="test"):
    """A directory of mpi4py's source distribution, fetched from PyPI once."""
    return pypi_source("mpi4py", version_of(mpi), part, ROOT / ".deps")


def exceptions():
    """[(MPI, whether it does not run plain either, pattern of test names, reason)] of exceptions.txt."""
    lines = (HERE / "exceptions.txt").read_text().splitlines()
    parts = [line.split(maxsplit=3) for line in lines if line and not line.startswith("#")]
    return [(mpi, {"sealed": False, "either": True}[how], pattern, reason) for mpi, how, pattern, reason in parts]


def not_run(mpi, plain):
    """Patterns of the tests that are not run, separated by spaces."""
    return " ".join(pattern for where, either, pattern, _ in exceptions() if where == mpi and (either or not plain))


def _rest(tests):
    """The modules that are in no job."""
    listed = {module for _, _, modules in JOBS.values() for module in modules or []}
    return sorted(path.stem for path in tests.glob("test_*.py") if path.stem not in listed)


def program(mpi, job):
    """One of JOBS."""
    nodes, ranks, modules = JOBS[job]
    tests = directory(mpi, DEMOS.get(job, "test"))
    command = [find_mpi(mpi).python, HERE / "unittest_outcomes.py", tests, "outcomes", *(modules or _rest(tests))]
    return Program(name=job, command=command, nodes=nodes, ranks=ranks, env={"SUITE_SKIP": not_run(mpi, plain=True)},
                   sealed_env={"SUITE_SKIP": not_run(mpi, plain=False)}, timeout=400,
                   exceptions=[(f"*: {pattern}", reason) for where, _, pattern, reason in exceptions() if where == mpi],
                   launcher=LAUNCHER.get((mpi, job), ()), cases=partial(unittest_cases, ranks, job))


def unittest_cases(ranks, job, directory, result):
    """Cases from the files of unittest_outcomes.py; of the ranks that differ, the one that did not pass counts. A job that ended badly is
    a failed case of its own."""
    merged = {}
    for rank in range(ranks):
        file = directory / f"outcomes.{rank}"
        for test, outcome in json.loads(file.read_text()).items() if file.exists() else ():
            if merged.get(test, "ok") in ("ok", "skipped"):
                merged[test] = outcome
    cases = {f"{job}: {test}": Case(outcome in ("ok", "skipped"), "", outcome) for test, outcome in merged.items()}
    last = {log.name: log.read_text().splitlines()[-1:] for log in sorted(directory.glob("*.log"))}
    cases[f"{job}: the job itself"] = Case(result.returncode == 0, "", f"{explanation(result)}; last tests {last}")
    return cases


SUITE = Suite(
    name="mpi4py",
    origin="PyPI mpi4py",
    version=version_of,
    mpis=("mpich-5", "openmpi-5"),
    programs=lambda mpi, place: [program(mpi, job) for job in JOBS if (mpi, job) not in NOT_ON | {("mpich-5", "collectives of four")}],
    compared="each test's outcome on all ranks",
    ranks=2,
)
