"""Attacks on files (S2, S3): a library under MPIsec plays the network (adversary.c), victim_files.c says what the program sees. A request for
the shared file pointer, or its answer, that was changed, cut, made longer, repeated, lost or swapped ends in the integrity error, and nothing
is written at a place that it would have led to."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORDS, SIZE = 4, 200


@pytest.fixture(scope="module")
def attack(run, compile_mpi, tmp_path_factory):
    """attack(attack, armed rank, mpi, how): ({rank: what its calls gave}, records in the file)."""

    def attack_(kind, armed, mpi="mpich-5", *how):
        library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"],
                              name="adversary.so")
        victim = compile_mpi(HERE / "victim_files.c", mpi, flags=["-std=gnu11"])
        file = tmp_path_factory.mktemp("attacked") / "file"
        result = run([victim, armed, SIZE, file, *how], nodes=2, ranks=2, mpi=mpi, timeout=30,
                     env={"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind})
        everything = result.stdout[-3000:] + result.stderr[-4000:]
        assert not result.timed_out, "the job hung\n" + everything
        said = {int(rank): what for rank, what in re.findall(r"^rank (\d): (.*)$", result.stdout, re.MULTILINE)}
        records = re.findall(r"^records (\d)$", result.stdout, re.MULTILINE)
        assert len(said) == 2 and len(records) == 1, everything
        assert "FOREIGN" not in result.stdout and (kind != "count" or result.returncode == 0), everything
        return said, int(records[0])

    return attack_


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_without_an_attack(attack, mpi):
    """What the attacks are held against: all records are there."""
    assert attack("count", 0, mpi) == ({0: "fine", 1: "fine"}, RECORDS)


# Of the first request: nonce, header, displacement, what is added, tag.
ATTACKS = ["flip-segment:1:4", "flip-segment:1:12", "flip-segment:1:36", "flip-segment:1:-20", "flip-segment:1:-1", "truncate-segment:1",
           "extend-segment:1", "replay-segment:1", "repeat-segment:1", "repeat-segment:3"]


@pytest.mark.parametrize("kind", ATTACKS)
def test_requests(attack, kind):
    """S2 S3: no forged or replayed request moves the pointer; both ranks get the integrity error."""
    said, records = attack(kind, 1)
    for rank in 0, 1:
        assert said[rank].startswith("MPIsec integrity error"), said
    if not kind.startswith("re"):
        assert records == 0, "the first request was attacked, and nothing must be written after it"


@pytest.mark.parametrize("kind", ["flip-segment:1:14", "flip-segment:1:-1", "truncate-segment:1", "replay-segment:1"])
def test_attacked_answers_are_rejected(attack, kind):
    """S2 S3: where a rank writes is what the keeper answered."""
    said, records = attack(kind, 0)
    assert said[1].startswith("MPIsec integrity error"), said
    assert records < RECORDS


@pytest.mark.parametrize("armed", [0, 1])
@pytest.mark.parametrize("segment", [1, 2])
def test_access_together(attack, armed, segment):
    """S2: a changed message of a collective access that exchanges data: no rank is told that all is well, nobody's data is another's."""
    said, _ = attack(f"flip-segment:{segment}:20", armed, "mpich-5", "together")
    assert any(said[rank].startswith("MPIsec integrity error") for rank in said), said
    assert "fine" not in said.values(), said


def test_access_together_without_an_attack(attack):
    """What these are held against."""
    assert attack("count", 0, "mpich-5", "together") == ({0: "fine", 1: "fine"}, RECORDS)


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_file_that_is_not_closed(attack, mpi):
    """S8: after the error MPI_Finalize does not wait for what was begun on the file."""
    said, _ = attack("flip-segment:1:36", 1, mpi, "kept")
    for rank in 0, 1:
        assert said[rank].startswith("MPIsec integrity error"), said


def test_openmpi(attack):
    """The same on another MPI."""
    for armed in 0, 1:
        said, records = attack("flip-segment:1:-1", armed, "openmpi-5")
        assert said[1].startswith("MPIsec integrity error") and records == 0, said
