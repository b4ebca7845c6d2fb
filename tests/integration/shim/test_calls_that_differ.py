"""Ranks that do not call a collective alike are told so: nobody waits for ever, in whatever algorithms they wait for each other."""

from pathlib import Path

import pytest
from slow import slow

PROGRAM = Path(__file__).parent / "calls_that_differ.c"
MPIS = ["mpich-5", *slow("openmpi-4", "openmpi-5", "impi")]
# MPICH 4.0 is not among those that go on: it takes a message that is too long for a fatal error of its own, and may hang in MPI_Finalize after errors.
OLDER = slow("mpich-4")
CALLS = ["bcast-more", "bcast-fewer", "allreduce", "reduce", "alltoall", "allgather", "scatter", "barrier", "root", "ibcast-more",
         "ibcast-polled"]
# Of a scatter or gather whose root gives itself too much, the root alone is told, as plain, and the communicator stays good.
HARMLESS = {"scatter"}


@pytest.fixture
def told(run, compile_mpi):
    """told(mpi, call, *more): the run, and what each rank was told, by step and rank."""

    def told_(mpi, call, *more):
        result = run([compile_mpi(PROGRAM, mpi), call, *more], nodes=2, ranks=4, mpi=mpi, timeout=60)
        steps = {}
        for line in result.stdout.splitlines():
            rank, step, *error = line.split(": ")
            if error:
                steps.setdefault(step, {})[rank] = error[0]
        return result, steps

    return told_


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("call", CALLS)
def test_every_rank_goes_on(told, mpi, call):
    result, steps = told(mpi, call, "return")
    assert not result.timed_out, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(": the end") == 4
    assert set(steps["barrier of the world"].values()) == {"success"}
    outcomes = [*steps["call"].values(), *steps["barrier"].values()]
    assert any(error != "success" for error in outcomes), result.stdout
    if call in HARMLESS:
        assert sorted(outcomes) == ["MPI_ERR_TRUNCATE", *["success"] * 7], result.stdout
    if call in ("bcast-more", "ibcast-more", "ibcast-polled"):
        assert set(outcomes) == {"MPI_ERR_TRUNCATE"}, result.stdout
        assert "as bcast from or to rank 0 of 2097152 bytes" in result.stderr, result.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_on_the_world(told, mpi):
    """MPI_Finalize needs no collective of the program's communicators."""
    result, steps = told(mpi, "bcast-more", "world")
    assert not result.timed_out, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + result.stderr
    assert set(steps["barrier"].values()) == {"MPI_ERR_TRUNCATE"}, result.stdout


@pytest.mark.parametrize("mpi", MPIS)
def test_a_root_that_has_gone_on_to_the_end_is_asked(told, mpi):
    result, _ = told(mpi, "bcast-fewer", "end")
    assert not result.timed_out, result.stdout + result.stderr
    assert result.returncode != 0


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("root", [0, 2])
def test_who_waits_in_a_call_that_failed_elsewhere_is_told(run, compile_mpi, mpi, root):
    """Root 0: the rank that failed is outside MPI since. Root 2: rank 0, which is asked, has not made the call yet."""
    result = run([compile_mpi(PROGRAM.with_name("failed_elsewhere.c"), mpi), root], nodes=2, ranks=4, mpi=mpi, timeout=60)
    assert not result.timed_out, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + result.stderr
    assert "the rank that fails: error" in result.stdout, result.stdout + result.stderr
    assert "the rank that waits: error in time" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("mpi", [*MPIS, *OLDER])
@pytest.mark.parametrize("way", ["world", "session"])
def test_a_rank_that_is_late_is_not_another(run, compile_mpi, mpi, way):
    """Ranks that have asked rank 0 what it called, which hears of it after the call, or never: nothing is said, and the end comes as always."""
    if way == "session" and mpi != "mpich-5":
        pytest.skip("two sessions, one after the other, between nodes: of these MPIs only MPICH 5")
    result = run([compile_mpi(PROGRAM.with_name("late_rank.c"), mpi), way], nodes=2, ranks=4, mpi=mpi, timeout=60)
    assert not result.timed_out, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("fine") == 4 and not result.stderr, result.stdout + result.stderr


def test_a_notice_counts_as_no_message(run, compile_mpi):
    """Rank 1 asks rank 0 on its own node, whose messages are not sealed: none is missing at the end."""
    app = compile_mpi(PROGRAM.with_name("late_rank.c"), "mpich-5")
    result = run([app, "world"], nodes=2, ranks=4, mpi="mpich-5", timeout=60, env={"MPISEC_STATS": "1"})
    assert result.stdout.count("fine") == 4, result.stdout + result.stderr
    assert "lost" not in result.stderr, result.stderr


@pytest.mark.parametrize("mpi", MPIS + OLDER)
@pytest.mark.parametrize("call", ["bcast-more", "bcast-fewer", "barrier"])
def test_a_fatal_handler_ends_the_job(told, mpi, call):
    result, _ = told(mpi, call)
    assert not result.timed_out, result.stdout + result.stderr
    assert result.returncode != 0
    assert ": the end" not in result.stdout
