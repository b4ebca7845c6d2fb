"""mpi4py's own test suite: whatever passes plain passes sealed, or exceptions.txt says which refused
procedure it uses (M13). `make conformance` runs the same jobs (suites/mpi4py.py).

CONFORMANCE_NODES=4 runs every job with one rank on each of so many nodes."""

import dataclasses
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.jobs import Job
from suites.mpi4py import JOBS, NOT_ON, SUITE, program

# Plain MPICH keeps a core while it waits: four ranks on two cores take minutes.
LEFT_OUT = [("mpich-5", "collectives of four"), *NOT_ON]
# The others take up to minutes each: `make test-all` and `make conformance` run them.
QUICK = [("openmpi-5", "others")]
LEAST = {"windows": 100, "files": 30, "spawn": 10, "fault tolerance": 10, "futures": 50}
CASES = [pytest.param(mpi, job, marks=[] if (mpi, job) in QUICK else [pytest.mark.slow]) for mpi in SUITE.mpis for job in JOBS
         if (mpi, job) not in LEFT_OUT]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("mpi", "job"), CASES)
def test_what_passes_plain_passes_sealed(run, mpi_python, tmp_path, mpi, job):
    """M3 M6 M8 M9 M13: mpi4py's whole suite."""
    mpi_python(mpi)  # skips where this MPI is missing
    jobs = program(mpi, job)
    if "CONFORMANCE_NODES" in os.environ:
        nodes = int(os.environ["CONFORMANCE_NODES"])
        jobs = dataclasses.replace(jobs, nodes=nodes, ranks=nodes)
    judged, messages = Job(run, SUITE, jobs, mpi, tmp_path).outcomes()
    passing = [name for name, (outcome, _) in judged.items() if outcome != "failed plain too"]
    assert len(passing) > LEAST.get(job, 150), f"mpi4py's suite ran hardly any test: {judged}"
    assert messages, "nothing was sealed"
    broken = {name: detail for name, (outcome, detail) in judged.items() if outcome == "differs"}
    assert not broken, f"{len(broken)} of {len(judged)} tests pass plain and fail sealed:\n" + "\n".join(
        f"{test}: {detail}" for test, detail in sorted(broken.items())[:40])
