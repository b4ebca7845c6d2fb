"""S8: when a rank dies, the job ends within a bounded time and says so, as it does without MPIsec, and nothing of MPIsec's stays.

The whole matrix (every point, four MPIs, 2 and 4 nodes) is marked slow: `make test-all`."""

from pathlib import Path

import deaths
import pytest

from mpisec_lab.mpis import find_mpi

SAMPLE = [("mpich-5", "second message of MPI_Init"), ("openmpi-5", "second message of MPI_Init"), ("mpich-5", "large"),
          ("openmpi-5", "allreduce"), ("mpich-4", "alltoall"), ("openmpi-4", "bcast"), ("mpich-5", "finalize")]


def check(cluster, mpi, point, layout, settings="sealed"):
    nodes, per_node = map(int, layout.split("x"))
    rank = 1 if point in deaths.HANDSHAKE else nodes * per_node - 1
    death = deaths.kill_one(cluster(nodes), mpi, point, rank, ranks=nodes * per_node, env=deaths.SETTINGS[settings])
    assert not death.ranks_left(), death.output[-3000:]
    # Open MPI 5's launcher now and then goes on when all ranks have ended, without MPIsec too (docs/failures.md).
    assert death.ended or mpi == "openmpi-5", f"no end within {deaths.LIMIT} s: {death.output[-3000:]}"
    if death.ended:
        assert death.returncode != 0 and (death.sentence() or death.returncode > 128), death.output[-3000:]
    if point not in deaths.HANDSHAKE:  # in MPI_Init the memory has a name for some milliseconds; the user's next job removes it
        assert not [name for name in death.left if name.startswith("mpisec-")], death.left
    return death


@pytest.mark.parametrize(("mpi", "point"), SAMPLE)
def test_the_job_ends(lab, cluster, mpi, point):
    """S8: a rank killed at this point ends the job, with a sentence and a status."""
    check(cluster, mpi, point, "2x2")


@pytest.mark.parametrize(("mpi", "point"), [("mpich-5", "allreduce"), ("openmpi-4", "large")])
def test_the_job_ends_on_four_nodes(lab, cluster, mpi, point):
    check(cluster, mpi, point, "4x1", "report")


@pytest.mark.parametrize("mpi", deaths.MPIS)
def test_no_name_stays_in_dev_shm(lab, cluster, mpi):
    """S8: killed before it came for memory that another rank of its node has made: the name was there until the user's next job."""
    check(cluster, mpi, "first", "2x2")


@pytest.mark.parametrize(("mpi", "point"), [("mpich-5", "first"), ("mpich-4", "allreduce"), ("openmpi-4", "first")])
def test_a_death_that_the_launcher_does_not_see_ends_the_job(lab, cluster, mpi, point):
    """S8: a rank of the same node that waits sees it, names the dead one and ends the job, by default."""
    death = deaths.kill_one(cluster(2), mpi, point, 3, env={"MPISEC_STALL_TIME": "2"}, hidden=True)
    assert death.ended and death.returncode != 0, death.output[-3000:]
    if find_mpi(mpi).launcher == "prrte":  # Open MPI 5, which Debian 13 has for openmpi-4: a rank whose connection to the dead one closes aborts
        return
    assert "rank 2 (node1): rank 3 of this node has died" in death.output, death.output[-3000:]
    assert "aborting the job" in death.output


def test_with_report_such_a_job_goes_on(lab, cluster, monkeypatch):
    monkeypatch.setattr(deaths, "LIMIT", 12)
    env = {"MPISEC_STALL_TIME": "2", "MPISEC_STALL_ACTION": "report"}
    death = deaths.kill_one(cluster(2), "mpich-5", "first", 3, env=env, hidden=True)
    assert not death.ended
    assert death.output.count("rank 2 (node1): rank 3 of this node has died") == 1, death.output[-3000:]


def test_slow_is_not_dead(lab, cluster, monkeypatch):
    """A rank that is stopped for long is waited for: reported, never ended for."""
    monkeypatch.setattr(deaths, "LIMIT", 12)
    death = deaths.kill_one(cluster(2), "mpich-5", "stopped", 3, env={"MPISEC_STALL_TIME": "1"})
    assert not death.ended and "stalled: waiting in" in death.output, death.output[-3000:]
    assert "has died" not in death.output, death.output[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["sealed", "report"])
@pytest.mark.parametrize("layout", [*deaths.LAYOUTS, "4x2"])
@pytest.mark.parametrize("point", deaths.POINTS)
@pytest.mark.parametrize("mpi", deaths.MPIS)
def test_the_job_ends_everywhere(lab, cluster, mpi, point, layout, settings):
    """S8: the whole matrix of docs/failures.md."""
    check(cluster, mpi, point, layout, settings)


def test_the_end_of_a_job_cannot_be_ignored(run, compile_mpi):
    """S8: MPISEC_STALL_ACTION=abort ends a process that ignores SIGABRT, too."""
    app = compile_mpi(Path(__file__).parent / "ignored_abort.c", "mpich-5", flags=["-std=gnu11"])
    result = run([app], nodes=2, ranks=2, mpi="mpich-5", env={"MPISEC_STALL_TIME": "2", "MPISEC_STALL_ACTION": "abort"}, timeout=30)
    assert "aborting the job, as MPISEC_STALL_ACTION=abort asks" in result.stderr, result.stderr
    assert not result.timed_out and result.returncode != 0, result
