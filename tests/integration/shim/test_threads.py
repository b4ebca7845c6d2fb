"""S4 M10: a program that calls MPI from more threads at a time than it asked for ends before a nonce can be used twice."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
LEVELS = ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED"]


@pytest.fixture
def threads(run, compile_mpi):
    def run_(level, how, main_too, mpi):
        app = compile_mpi(HERE / "undeclared_threads.c", mpi, flags=["-pthread"])
        below = compile_mpi(HERE / "one_at_a_time.c", mpi, name="one_at_a_time.so",
                            flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"])
        # Yielding, so that waits are polls and no thread stays in the library below, which lets in one at a time.
        return run([app, LEVELS.index(level), how, int(main_too)], mpi=mpi, timeout=20,
                   env={"LD_PRELOAD": below, "MPISEC_AEAD": "openssl", "MPISEC_YIELD": "on" if how == "collectives" else "auto"})

    return run_


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize(("level", "how", "main_too"), [
    ("MPI_THREAD_SINGLE", "together", True), ("MPI_THREAD_FUNNELED", "together", False),
    ("MPI_THREAD_SERIALIZED", "together", True), ("MPI_THREAD_SINGLE", "collectives", True)])
def test_two_threads_at_a_time_end_the_job(threads, level, how, main_too, mpi):
    """S4: two threads seal at the same time, without MPI_THREAD_MULTIPLE: one sentence says call, level and remedy, and the job ends."""
    result = threads(level, how, main_too, mpi)
    assert result.returncode not in (0, 124), result.stdout + result.stderr
    call = "MPI_Bcast" if how == "collectives" else "MPI_Send"
    said = [line for line in result.stderr.splitlines() if "two threads of this rank call MPI at the same time" in line]
    assert said and call in said[0] and level in said[0] and "ask for MPI_THREAD_MULTIPLE" in said[0], result.stderr[-3000:]


@pytest.mark.parametrize("level", LEVELS)
def test_threads_that_take_turns_go_on(threads, level):
    """M10: threads that call one after the other break nothing, whatever level was asked for: the job is as plain."""
    result = threads(level, "turns", True, "mpich-5")
    assert result.returncode == 0 and result.stdout.count("done") == 2, result.stderr[-3000:]
    assert "two threads" not in result.stderr
