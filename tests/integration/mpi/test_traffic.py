"""Random traffic, plain and sealed with the same seed: every received byte and status is the same.

10,000 operations over the MPIs. For more: TRAFFIC_OPERATIONS (per job), TRAFFIC_SEED (the first seed; each job takes the
next), or TRAFFIC_SECONDS (per job; each rank then checks against the schedule, nothing is compared).
"""

import os

import pytest
from mpi_programs import YIELD, build_traffic

OPERATIONS = int(os.environ.get("TRAFFIC_OPERATIONS", "1250"))
SECONDS = float(os.environ.get("TRAFFIC_SECONDS", "0"))
SEED = int(os.environ.get("TRAFFIC_SEED", "20261121"))

# (MPI, nodes, ranks, threads)
JOBS = [
    ("mpich-5", 2, 2, 1), ("mpich-5", 2, 4, 3), ("mpich-5", 4, 8, 1), ("openmpi-5", 2, 4, 1), ("openmpi-5", 2, 2, 3),
    ("mpich-4", 2, 4, 1), ("openmpi-4", 2, 4, 1), ("openmpi-4", 4, 4, 1),
]


def records(run, app, job, log, plain):
    """The lines that all ranks wrote (sorted), one per received message."""
    mpi, nodes, ranks, threads = job
    seed = SEED + JOBS.index(job)
    command = [app, "--seed", seed, "--operations", OPERATIONS, "--threads", threads, "--log", log]
    result = run(command, nodes=nodes, ranks=ranks, mpi=mpi, plain=plain, timeout=120 + OPERATIONS // 10, env=YIELD)
    assert result.returncode == 0, f"seed {seed}: {result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return [sorted((log.parent / f"{log.name}.{rank}").read_text().splitlines()) for rank in range(ranks)]


@pytest.mark.timeout(600 + SECONDS)
@pytest.mark.parametrize("job", JOBS, ids="{0[0]}-{0[1]}nodes-{0[2]}ranks-{0[3]}threads".format)
def test_plain_and_sealed_deliver_the_same(job, run, compile_mpi, tmp_path):
    """S2 S3 M2 M3 M4 M5 M6 M7 M8 M9 M10: the same seed plain and sealed gives the same records on every rank."""
    app = build_traffic(compile_mpi, job[0])
    if SECONDS:
        mpi, nodes, ranks, threads = job
        result = run([app, "--seed", SEED + JOBS.index(job), "--seconds", SECONDS, "--threads", threads], nodes=nodes,
                     ranks=ranks, mpi=mpi, timeout=SECONDS + 120, env=YIELD)
        assert result.returncode == 0, result.stderr[-4000:]
        return
    plain = records(run, app, job, tmp_path / "plain", True)
    sealed = records(run, app, job, tmp_path / "sealed", False)
    assert sum(map(len, sealed)) >= OPERATIONS * 0.9, "too few messages for the operations asked for"
    for rank, (expected, got) in enumerate(zip(plain, sealed)):
        assert got == expected, f"rank {rank}: the first difference: {next(p for p in zip(expected, got) if p[0] != p[1])}"


def test_the_comparison_sees_another_seed(run, compile_mpi, tmp_path):
    """The records depend on what was sent: other seeds give others."""
    app = build_traffic(compile_mpi, "mpich-5")
    for seed in 1, 2:
        run([app, "--seed", seed, "--operations", 50, "--log", tmp_path / str(seed)], mpi="mpich-5", plain=True).check()
    assert (tmp_path / "1.0").read_text() != (tmp_path / "2.0").read_text()
