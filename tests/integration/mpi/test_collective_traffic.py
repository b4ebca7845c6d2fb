"""Random collectives, sealed and, with the same seed, without collectives and plain: all bytes of every rank's buffers are the same
(collective_traffic.c).

For more: COLLECTIVE_TRAFFIC_OPERATIONS (per job), COLLECTIVE_TRAFFIC_SEED (the first seed; each job takes the next).
"""

import os

import pytest
from mpi_programs import YIELD, algorithms, build_collectives
from slow import slow

OPERATIONS = int(os.environ.get("COLLECTIVE_TRAFFIC_OPERATIONS", "500"))
SEED = int(os.environ.get("COLLECTIVE_TRAFFIC_SEED", "20261121"))

# (MPI, nodes, ranks, threads, further options, environment)
JOBS = {
    "mpich-5 2x2": ("mpich-5", 2, 4, 1, [], {}),
    "mpich-5 2+1": ("mpich-5", 2, 3, 1, [], {}),
    "mpich-5 3x1": ("mpich-5", 3, 3, 1, ["--any-order"], {}),
    "mpich-5 4x2": ("mpich-5", 4, 8, 1, [], {}),
    "mpich-5 threads": ("mpich-5", 2, 4, 3, [], {}),
    "mpich-5 same node sealed": ("mpich-5", 2, 4, 1, [], {"MPISEC_SAME_NODE": "seal"}),
    "mpich-5 same node plain": ("mpich-5", 2, 4, 1, [], {"MPISEC_SAME_NODE": "plain"}),
    "mpich-5 new keys": ("mpich-5", 2, 3, 1, [], {"MPISEC_REKEY_MESSAGES": "7"}),
    "mpich-5-abi 2x2": ("mpich-5-abi", 2, 4, 1, [], {}),
    "openmpi-5 2x2": ("openmpi-5", 2, 4, 1, ["--any-order"], {}),
    "openmpi-5 4x2": ("openmpi-5", 4, 8, 1, [], {}),
    "openmpi-5 threads": ("openmpi-5", 2, 3, 3, [], {}),
    "mpich-4 2x2": ("mpich-4", 2, 4, 1, [], {}),
    "openmpi-4 2+1": ("openmpi-4", 2, 3, 1, [], {}),
}
SLOW = ("mpich-5 2+1", "mpich-5 same node plain", "mpich-5 4x2", "openmpi-5 2x2")  # what others show too
REFERENCE = "openmpi-5"  # the quickest; what MPI delivers does not depend on the MPI


@pytest.fixture(scope="module")
def records(run, compile_mpi):
    """records(job, seed, log, reference, operations, **settings): the lines that all ranks wrote (sorted), one per completion."""

    def records_(job, seed, log, reference, operations=OPERATIONS, **settings):
        mpi, nodes, ranks, threads, options, env = job
        how = ["--reference"] if reference else options
        if reference:
            mpi = REFERENCE
        app = build_collectives(compile_mpi, mpi)
        command = [app, "--seed", seed, "--operations", operations, "--threads", threads, "--log", log, *how]
        result = run(command, nodes=nodes, ranks=ranks, mpi=mpi, plain=reference, timeout=120 + operations // 2,
                     env=YIELD | ({} if reference else env | settings))
        finished = "collective traffic: " in result.stdout and (result.returncode == 0 or (mpi == "mpich-4" and result.timed_out))
        assert finished, f"seed {seed}: {result.stdout[-2000:]}\n{result.stderr[-4000:]}"
        return [sorted((log.parent / f"{log.name}.{rank}").read_text().splitlines()) for rank in range(ranks)]

    return records_


def check_same(expected, got):
    """The ranks delivered the same."""
    for rank, (right, lines) in enumerate(zip(expected, got, strict=True)):
        other = [pair for pair in zip(right, lines, strict=False) if pair[0] != pair[1]]
        assert not other and len(right) == len(lines), f"rank {rank}: {len(other)} of {len(right)} differ, the first: {other[:3]}"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [*(job for job in JOBS if job not in SLOW), *slow(*SLOW)])
def test_sealed_collectives_deliver_what_mpi_says(name, records, tmp_path):
    """S2 S6 M5 M6 M7 M8 M10: collectives of every kind on communicators of every kind, several under way."""
    job, seed = JOBS[name], SEED + list(JOBS).index(name)
    expected = records(job, seed, tmp_path / "reference", True)
    got = records(job, seed, tmp_path / "sealed", False)
    assert sum(map(len, got)) >= OPERATIONS
    check_same(expected, got)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("nodes,ranks", [(3, 5), *slow((2, 4))])
def test_every_algorithm(nodes, ranks, records, tmp_path):
    """S2: the same with every algorithm of every collective, a few of them in each job."""
    known = algorithms()
    job, operations = ("mpich-5", nodes, ranks, 1, [], {}), OPERATIONS // 4
    expected = records(job, SEED, tmp_path / "reference", True, operations)
    for turn in range(max(map(len, known.values()))):
        forced = {f"MPISEC_{name.upper()}": names[turn % len(names)] for name, names in known.items()}
        got = records(job, SEED, tmp_path / "sealed", False, operations, **forced)
        check_same(expected, got)


def test_the_comparison_sees_another_seed(records, tmp_path):
    """The records depend on what was sent: other seeds give others."""
    job = JOBS["mpich-5 2x2"]
    one, other = (records(job, seed, tmp_path / str(seed), True, 20) for seed in (1, 2))
    with pytest.raises(AssertionError):
        check_same(one, other)
