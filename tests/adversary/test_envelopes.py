"""What MPI says of a message before it is verified (S2, S8): a library under MPIsec plays the network (envelopes.c), victim_envelopes.c says
what the program sees."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def job(run, compile_mpi):
    """job(mode, envelope, mpi): the Result."""

    def job_(mode, envelope, mpi):
        library = compile_mpi(HERE / "envelopes.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"], name="envelopes.so")
        victim = compile_mpi(HERE / "victim_envelopes.c", mpi, flags=["-std=gnu11"])
        return run([victim, mode], nodes=2, ranks=4, mpi=mpi, timeout=30, env={"LD_PRELOAD": library, "MPISEC_LAB_ENVELOPE": envelope})

    return job_


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("mode", ["recv", "irecv"])
def test_a_named_source(job, mode, mpi):
    """S2: a receive that names its source takes no other rank's message, though that is sealed and the envelope says whose it is."""
    assert "got text 2 from 2" in job(mode, "", mpi).stdout
    result = job(mode, "moved", mpi)
    assert "error MPIsec integrity error" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("source", [-5, 4, 1000, 1_000_000_000])
def test_a_source_that_there_is_not(job, source, mpi):
    """S8: where a notice seems to come from a rank that there is not, nothing is looked up for it."""
    result = job("late", f"source={source}", mpi)
    assert result.returncode == 0 and "fine, the sum is 4" in result.stdout, result.stdout[-2000:] + result.stderr[-3000:]
