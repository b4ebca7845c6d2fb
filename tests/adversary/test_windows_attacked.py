"""Attacks on one-sided communication (S2, S3): a library under MPIsec plays the network (adversary.c), victim_windows.c says what the program
sees. A request or an answer that was changed, cut, made longer, repeated, lost or swapped ends in the integrity error on both ranks, and no
byte of it is in the window or in what was fetched."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SMALL, LARGE = 200, 100000  # LARGE: the data travels in a message of its own, of two segments


@pytest.fixture(scope="module")
def attack(run, compile_mpi):
    """attack(attack, armed rank, kind, size, mpi, way): {rank: (what its calls gave, its memory)}."""

    def attack_(kind, armed, operation, size, mpi="mpich-5", way="apart"):
        library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"],
                              name="adversary.so")
        victim = compile_mpi(HERE / "victim_windows.c", mpi, flags=["-std=gnu11"])
        result = run([victim, armed, operation, size, way], nodes=2, ranks=2, mpi=mpi, timeout=30,
                     env={"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind})
        everything = result.stdout[-3000:] + result.stderr[-4000:]
        assert not result.timed_out, "the job hung\n" + everything
        said = dict(re.findall(r"^rank (\d): (?!memory)(.*)$", result.stdout, re.MULTILINE))
        memory = dict(re.findall(r"^rank (\d): memory (.*)$", result.stdout, re.MULTILINE))
        assert len(said) == len(memory) == 2, everything
        assert "FOREIGN" not in result.stdout and (kind != "count" or result.returncode == 0), everything
        return {int(rank): (said[rank], memory[rank]) for rank in said}

    return attack_


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("operation", ["put", "get", "accumulate"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_without_an_attack(attack, mpi, operation, size):
    """What the attacks are held against: everything is as meant."""
    said = attack("count", 0, operation, size, mpi)
    assert said[0][0] == said[1][0] == "fine"
    assert said[0 if operation == "get" else 1][1] == "as meant"


# Of the first request: nonce, header, displacement, data, tag.
ATTACKS = ["flip-segment:1:4", "flip-segment:1:12", "flip-segment:1:36", "flip-segment:1:-40", "flip-segment:1:-1", "truncate-segment:1",
           "extend-segment:1", "replay-segment:1", "swap-segments:1", "drop-segment:1", "repeat-segment:1", "repeat-segment:3"]


@pytest.mark.parametrize("kind", ATTACKS)
@pytest.mark.parametrize("operation", ["put", "accumulate", "get"])
def test_requests(attack, kind, operation):
    """S2 S3: no forged, replayed, reordered or lost request changes the window; both ranks get the integrity error."""
    said = attack(kind, 0, operation, SMALL)
    for rank in 0, 1:
        assert said[rank][0].startswith("MPIsec integrity error"), said
    if kind.startswith(("flip", "truncate", "extend", "drop", "swap")):
        assert said[0 if operation == "get" else 1][1] == "as it was", "the first request was attacked, and those after it must not be done"


# In the message of all requests: nonce, the second header, data of the third, tag.
@pytest.mark.parametrize("kind", ["flip-segment:1:4", "flip-segment:1:300", "flip-segment:1:650", "flip-segment:1:-1", "truncate-segment:1",
                                  "extend-segment:1", "repeat-segment:1"])
@pytest.mark.parametrize("operation", ["put", "accumulate"])
def test_requests_together(attack, kind, operation):
    """S2 S3: of requests in one message either all are done or none, and once."""
    assert attack("count", 0, operation, SMALL, way="together")[1] == ("fine", "as meant")
    said = attack(kind, 0, operation, SMALL, way="together")
    for rank in 0, 1:
        assert said[rank][0].startswith("MPIsec integrity error"), said
    if not kind.startswith("repeat"):
        assert said[1][1] == "as it was", said


@pytest.mark.parametrize("kind", ["flip-segment:1:20", "truncate-segment:1", "replay-segment:1", "swap-segments:1"])
def test_attacked_answers_are_rejected(attack, kind):
    """S2 S3: what is fetched is what the target sent."""
    said = attack(kind, 1, "get", SMALL)
    assert said[0][0].startswith("MPIsec integrity error"), said


@pytest.mark.parametrize("kind", ["count", "flip-segment:1:20", "flip-segment:1:-1", "truncate-segment:1"])
def test_the_answer_to_a_flush(run, compile_mpi, kind):
    """S3: the call that waits for it ends in the integrity error, not the next one."""
    library = compile_mpi(HERE / "adversary.c", "mpich-5", flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"], name="adversary.so")
    victim = compile_mpi(HERE / "victim_windows.c", "mpich-5", flags=["-std=gnu11"])
    result = run([victim, 1, "put", SMALL, "apart"], nodes=2, ranks=2, timeout=30, env={"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind})
    assert ("flush fine" if kind == "count" else "flush failed") in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("kind", ["count", "drop-segment:1"])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_lost_answer(run, compile_mpi, mpi, kind):
    """S3: no other answer of its length is taken for it: who waits for it waits on."""
    library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"], name="adversary.so")
    victim = compile_mpi(HERE / "victim_windows.c", mpi, flags=["-std=gnu11"])
    result = run([victim, 1, "get", SMALL, "wait"], nodes=2, ranks=2, mpi=mpi, timeout=30,
                 env={"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind, "MPISEC_STALL_TIME": "2", "MPISEC_STALL_ACTION": "abort"})
    assert "first ANOTHER'S" not in result.stdout
    assert ("first right" in result.stdout) == (kind == "count"), result.stdout + result.stderr
    assert kind == "count" or "stalled" in result.stderr, result.stdout + result.stderr


@pytest.mark.parametrize("kind", ["flip-segment:2:30", "flip-segment:2:-1", "flip-segment:3:100"])
def test_large(attack, kind):
    """S2: a changed bit in data of several segments; what was not verified is not in the window."""
    said = attack(kind, 0, "put", LARGE)
    for rank in 0, 1:
        assert said[rank][0].startswith("MPIsec integrity error"), said


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_fence(attack, mpi):
    """S2: a rank that has come to a fence does not wait there for one that has met the error."""
    assert attack("count", 0, "put", SMALL, mpi, way="fence")[1] == ("fine", "as meant")
    said = attack("flip-segment:1:36", 0, "put", SMALL, mpi, way="fence")
    for rank in 0, 1:
        assert said[rank][0].startswith("MPIsec integrity error"), said
    assert said[1][1] == "as it was"


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_window_that_is_not_freed(attack, mpi):
    """S8: after the error MPI_Finalize does not wait for what was begun on the window."""
    said = attack("flip-segment:1:36", 0, "put", SMALL, mpi, way="kept")
    for rank in 0, 1:
        assert said[rank][0].startswith("MPIsec integrity error"), said


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("kind", ["count", "flip-segment:1:20"])
def test_requests_of_a_window_that_is_gone(run, compile_mpi, kind, mpi):
    """S8: who frees a window that has failed and completes its requests then gets their error."""
    library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"], name="adversary.so")
    victim = compile_mpi(HERE / "victim_windows.c", mpi, flags=["-std=gnu11"])
    result = run([victim, 1, "get", SMALL, "freed"], nodes=2, ranks=2, mpi=mpi, timeout=30, env={"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind})
    assert ("requests fine" if kind == "count" else "requests failed") in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_memory_of_gets(attack, size):
    """S2: memory that was to be fetched into is the program's again when the call has ended in the error."""
    said = attack("flip-segment:1:20", 1, "get", size, way="reuse")
    assert said[0][0].startswith("MPIsec integrity error"), said
    assert said[0][1] == "left alone", said


def test_openmpi(attack):
    """The same on another MPI."""
    for kind in "flip-segment:1:-40", "repeat-segment:1":
        said = attack(kind, 0, "put", SMALL, "openmpi-5")
        assert said[0][0].startswith("MPIsec integrity error") and said[1][0].startswith("MPIsec integrity error"), said
