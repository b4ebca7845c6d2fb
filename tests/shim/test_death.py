"""S8: when a rank dies, the job ends within a bounded time and says so, as it does without MPIsec, and nothing of MPIsec's stays.

The whole matrix (every point, four MPIs, 2 and 4 nodes) is marked slow: `make test-all`."""


import deaths
import pytest

SAMPLE = [("mpich-5", "second message of MPI_Init"), ("openmpi-5", "second message of MPI_Init"), ("mpich-5", "large"),
          ("openmpi-5", "allreduce"), ("mpich-4", "alltoall"), ("openmpi-4", "bcast"), ("mpich-5", "finalize"), ("openmpi-5", "first")]


def check(cluster, mpi, point, nodes):
    rank = 1 if point in deaths.HANDSHAKE else 2 * nodes - 1
    death = deaths.kill_one(cluster(nodes), mpi, point, rank)
    assert death.ended, f"no end within {deaths.LIMIT} s: {death.output[-3000:]}"
    assert death.returncode != 0 and death.sentence(), death.output[-3000:]
    assert not death.left_over, death.left_over


# Open MPI 5's launcher now and then does not end such a job: with make test-all.
@pytest.mark.parametrize(("mpi", "point"), [
    pytest.param(mpi, point, marks=[pytest.mark.slow] if mpi == "openmpi-5" else []) for mpi, point in SAMPLE])
def test_the_job_ends(lab, cluster, mpi, point):
    """S8: a rank killed at this point ends the job, with MPISEC_STALL_ACTION=report, with a sentence and a status."""
    check(cluster, mpi, point, 2)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("point", deaths.POINTS)
@pytest.mark.parametrize("mpi", deaths.MPIS)
def test_the_job_ends_everywhere(lab, cluster, mpi, point, nodes):
    """S8: the whole matrix of docs/failures.md."""
    check(cluster, mpi, point, nodes)
