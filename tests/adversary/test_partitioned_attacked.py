"""Attacks on partitioned messages (S2, S3, S8): the network (adversary.c, under MPIsec) changes the pieces while victim_partitioned.c
receives them; errors are returned.

A changed, cut, replayed or misplaced piece is the integrity error of its start, no unauthenticated byte is in the buffer, no partition
is said to have arrived that has not; the other message and the next start arrive; nothing hangs."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STARTS, MESSAGES = 4, 2
CUT = (4, 2, 5000)  # partitions of the sender and of the receiver, bytes of the sender's
INTEGRITY, FINE = "error MPIsec integrity error", "as sent"


@pytest.fixture(scope="module")
def attack(run, compile_mpi, tmp_path_factory):
    """attack(kind, scenario, cut, ways, mpi, **options): (Result, {(way, message, start): what the receiver said})."""

    def attack_(kind, scenario="one", cut=CUT, ways="wait,arrived", mpi="mpich-5", **options):
        library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"],
                              name="adversary.so")
        victim = compile_mpi(HERE / "victim_partitioned.c", mpi, flags=["-std=gnu11"])
        says = tmp_path_factory.mktemp("victim") / "says"
        env = {"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind, "VICTIM_SAYS": says} | options.pop("env", {})
        result = run([victim, scenario, *cut, ways], nodes=2, ranks=2, mpi=mpi, env=env, **{"timeout": 30, **options})
        said = re.findall(r"^rank 1 (\w+) message (\d) start (\d): (.*)$", says.read_text(), re.MULTILINE)
        return result, {(way, int(message), int(start)): text for way, message, start, text in said}

    return attack_


def check(result, said, attacked, ways=("wait", "arrived")):
    """`attacked`: {(message, start)} that must end in the integrity error; all others arrive."""
    everything = f"{said}\n" + result.stdout[-4000:] + result.stderr[-4000:]
    assert not result.timed_out, "the job hung\n" + everything
    assert result.returncode == 0, everything
    assert not [line for line in said.values() if "FOREIGN" in line], f"unauthenticated bytes reached the program\n{everything}"
    for way in ways:
        for message in range(MESSAGES):
            for start in range(STARTS):
                line = said.get((way, message, start))
                expected = INTEGRITY if (message, start) in attacked else FINE
                assert line and line.startswith(expected), f"{way}: message {message}, start {start}: {line}\n{everything}"


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_without_an_attack(attack, mpi):
    """The adversary that changes nothing changes nothing, and sees the four pieces of each of the two messages."""
    result, said = attack("count", mpi=mpi)
    check(result, said, set())
    assert result.stdout.count("and 8 segments") == 2, result.stdout


# Bytes of a piece: its index 0-7, ciphertext, tag in the last 16. Pieces 1 to 4 are of the first message, 5 to 8 of the second.
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("kind", [
    "flip-segment:1:0", "flip-segment:1:7", "flip-segment:1:8", "flip-segment:3:middle", "flip-segment:4:-1", "truncate-segment:3",
    "extend-segment:3",
])
def test_changed_piece(attack, kind, mpi):
    """S2: a changed bit anywhere in a piece, its index included, or another length is the integrity error."""
    result, said = attack(kind, mpi=mpi)
    check(result, said, {(0, 1)})


@pytest.mark.parametrize("cut", [(1, 1, 0), (1, 4, 2_000_000), (64, 1, 100)], ids=["empty", "large", "many"])
def test_changed_piece_of_other_messages(attack, cut):
    """S2: also of an empty message, of a large partition, and of many small ones."""
    result, said = attack("flip-segment:1:-1", cut=cut)
    check(result, said, {(0, 1)})


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_replayed_piece(attack, mpi):
    """S3: a piece in the place of a later one of its message is the integrity error, and the one that is there already stays."""
    result, said = attack("replay-segment:1", mpi=mpi)
    check(result, said, {(0, 1)})


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_replayed_start(attack, mpi):
    """S3: all pieces of the start before are not taken for those of this one."""
    result, said = attack("replay-all", "again", mpi=mpi)
    check(result, said, {(0, 2), (1, 2)})


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_pieces_of_two_messages_change_places(attack, mpi):
    """S2: a piece of another message of the same ranks does not open."""
    result, said = attack("swap-rounds", mpi=mpi)
    check(result, said, {(0, 1), (1, 1)})


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_reordered_pieces(attack, mpi):
    """Pieces name their place: in another order they are still the message."""
    result, said = attack("swap-segments:1", mpi=mpi)
    check(result, said, set())


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("kind", ["flip-segment:1:20", "truncate-segment:1"])
@pytest.mark.parametrize("cut", [CUT, (1, 1, 2_000_000)], ids=["small", "large"])
@pytest.mark.parametrize("scenario", ["first", "ready"])
def test_changed_notice(attack, scenario, cut, kind, mpi):
    """S2, S8: how the message is cut, and that the receiver is ready, are sealed too; where that was changed, nothing goes between these ranks,
    and neither waits for the other."""
    result, said = attack(kind, scenario, cut=cut, ways="wait", mpi=mpi)
    assert not result.timed_out, f"the job hung\n{said}\n" + result.stdout[-2000:] + result.stderr[-4000:]
    assert said["wait", 0, 0].startswith(INTEGRITY), result.stdout + result.stderr


def test_what_was_lost_in_a_session_is_not_the_next_ones(attack):
    """S2, S8: the processes of the next session get the numbers of those of the last one, but not their errors."""
    result, said = attack("flip-segment:1:20", "sessions", ways="arrived,wait")
    assert result.returncode == 0, f"{said}\n" + result.stdout[-2000:] + result.stderr[-4000:]
    assert said["arrived", 0, 0].startswith(INTEGRITY), result.stdout + result.stderr
    check(result, said, set(), ways=["wait"])


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_lost_piece(attack, mpi):
    """S2, S8: where a piece is lost, one of the next start comes in its place, and that is the integrity error; where none comes, the
    stall is reported."""
    result, said = attack("drop-segment:1", "lost", ways="wait", mpi=mpi)
    assert said["wait", 0, 1].startswith(INTEGRITY), result.stdout + result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_notice_that_never_arrives(run, compile_mpi, tmp_path, mpi):
    """S8: three notices of rank 2 are announced (envelopes.c), which it never sends: the other ranks' messages arrive all the same, in time."""
    library = compile_mpi(HERE / "envelopes.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"], name="envelopes.so")
    victim = compile_mpi(HERE / "victim_partitioned.c", mpi, flags=["-std=gnu11"])
    says = tmp_path / "says"
    result = run([victim, "one", *CUT, "wait"], nodes=3, ranks=3, mpi=mpi, timeout=45,
                 env={"LD_PRELOAD": library, "MPISEC_LAB_ENVELOPE": "source=2", "VICTIM_SAYS": says})
    assert not result.timed_out, "the job hung\n" + result.stderr[-4000:]
    assert says.read_text().count(f": {FINE};") == MESSAGES * STARTS, says.read_text() + result.stderr[-4000:]


def test_plain_is_not_what_is_tested(attack):
    """The same attack on the library's own messages gets through: what these tests show is MPIsec's doing."""
    result, _ = attack("count", plain=True)
    assert result.returncode == 0, result.stdout + result.stderr
