"""Connections of the MPI library between nodes (S2): who writes to them writes nothing into a process and reads nothing from one (S1), and what they
carry arrives as it was sent or ends the job (S8). Below MPIsec, in records: transport/authenticated_stream.hpp."""

import re
import shutil
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from mpisec_lab import places

BELOW = Path(__file__).parent / "below"
sys.path.insert(0, str(BELOW))

from below import AS_PLAIN, CLEAR, DIFFERENT, MARKER, REFUSED, TRIES, Jobs, judge, read_frames  # noqa: E402
from library_faults import fault_of  # noqa: E402

LIBRARIES = ["openmpi-5", "openmpi-4", "mpich-4"]  # whose connections are authenticated by themselves
ALL = [("openmpi-5", "auto"), ("mpich-4", "auto"), ("mpich-5", "authenticate")]
ADDRESS = r"10\.77\.0\.\d+"  # of a node of the lab
NOT_SENT = rf"connection with {ADDRESS} .*\bsent there"
FOREIGN = rf"{ADDRESS}.*(as MPIsec (does|answers)|without an answer)"  # the other side has no such records
UNKNOWN = rf"connection (with|from) {ADDRESS} .*cannot be authenticated"
WRITTEN = b"WRITTEN-BY-THE-ATTACKER!"
MESSAGES, LENGTH, LONG, THE_LONG_ONE, GATHERED, BYTES, VISITS = 10, 1000, 300000, 2, 80000, 4096, 2000  # of connected.c
GARBAGE = "ff" * 8
MORE = 1 << 6  # in the last byte of a record's length: it is not the end of what was sent


@pytest.fixture
def jobs(cluster, compile_mpi):
    """jobs(mpi, connections): a Jobs whose ranks have memory that is not sent (below/connected.c)."""

    all_made = []

    def jobs_(mpi, connections="auto", ranks=2, settings=None):
        victim = compile_mpi(BELOW / "connected.c", mpi, flags=["-std=gnu11", "-ldl"])
        own = {"MPISEC_CONNECTIONS": connections, "BELOW_CLEAR": MARKER} | (settings or {})
        made = Jobs(mpi, ranks, places.find_mpisec(), own, cluster(2))
        made.victim, made.left = victim, None
        all_made.append(made)
        return made

    yield jobs_
    for made in all_made:  # a job that ends in MPI_Init may leave the name of its memory
        made.tidy()


def digest(text):
    """As connected.c makes it."""
    value = 0
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


@cache
def undisturbed(ranks):
    """{(rank, what): digest} that connected.c prints when nobody attacks it."""
    cycle = bytes(range(256)) * (LONG // 256 + 2)
    found = {}
    for rank in range(ranks):
        sender = (rank + ranks // 2) % ranks
        lengths = [LONG if i == THE_LONG_ONE else LENGTH for i in range(MESSAGES)]
        found[rank, "messages"] = digest(b"".join(cycle[sender + i :][:length] for i, length in enumerate(lengths)))
        found[rank, "gathered"] = digest(b"".join(cycle[each:][:GATHERED] for each in range(ranks)))
        found[rank, "memory"] = digest((MARKER.encode() * BYTES)[:BYTES])
    return found


class Attacked:
    """What became of a job."""

    def __init__(self, job, attack="", only=()):
        self.mpi = job.mpi
        self.result, directory = job.run(attack, only, record=True)
        self.frames = read_frames(directory)
        self.hit = any(line.startswith("hit ") for file in directory.glob("hits-*") for line in file.read_text().splitlines())
        self.led = any(directory.glob("led-*"))
        clear = [line for file in directory.glob("clear-*") for line in file.read_text().splitlines()]
        shutil.rmtree(directory)
        self.said = self.result.stdout + self.result.stderr
        self.outcome, detail = judge(self.result, undisturbed(job.ranks), job.ranks, clear)
        self.story = f"{attack}: {self.outcome} {detail}\n{self.said}"

    def ended(self):
        """Whether the job ended in time (all of its ranks did, where the library's launcher alone is left) and failed, and nobody got anything else."""
        hangs = self.result.timed_out and not fault_of(self.result, self.mpi)
        return self.outcome not in (DIFFERENT, CLEAR) and not hangs and self.result.returncode != 0


def leave_alone(job):
    """What became of a job that is not attacked: it ends as it should."""
    for _ in range(TRIES):  # MPICH 4.0 may hang in MPI_Finalize
        job.left = Attacked(job)
        if job.left.result.returncode == 0:
            break
    assert job.left.outcome == AS_PLAIN, job.left.story
    return job.left


def attack(job, choose, mutation):
    """What became of a job in which that happens to the frame that `choose` finds among those of a job that was left alone."""
    for _ in range(TRIES):  # one job may send a frame more or less than another: the first of its kind from there on
        frame = choose((job.left or leave_alone(job)).frames)
        attacked = Attacked(job, f"{frame.sender}>{frame.receiver}#{frame.number}/{frame.kind} {mutation}")
        if attacked.hit:
            return attacked
        job.left = None
    pytest.fail(f"no job was attacked: {attacked.story}")


def sent(frames, kinds, sender=0, receiver=1):
    """Those frames of the program's messages."""
    return [frame for frame in frames if (frame.sender, frame.receiver) == (sender, receiver) and frame.section == 1 and frame.kind in kinds]


def of_kind(*kinds):
    """Chooses the second frame of these kinds of the program's messages."""
    return lambda frames: sent(frames, kinds)[1]


def put(mpi, stdout):
    """The MPI library's own frame that says where its data go: to the last rank's memory."""
    address = memory_of(stdout)
    if mpi == "mpich-4":  # UCX: an active message
        return (struct.pack("<BIQQI", 33, 20, address, len(WRITTEN), 0x7FFFFFF0) + WRITTEN).hex()
    return (struct.pack("<BBHIQQ", 65, 2, 1, len(WRITTEN), address, len(WRITTEN)) + WRITTEN).hex()  # btl tcp


def get(stdout, endpoint):
    """UCX's own request for the last rank's memory, with the identifier of who asks in hexadecimal."""
    return struct.pack("<BIQQ", 18, 36, memory_of(stdout), 512).hex() + endpoint + struct.pack("<QI", 0x1001, 0).hex()


def memory_of(stdout):
    """The address of the last rank's memory: the same in every job, since it is not randomized."""
    return int(re.search(r"^rank 1 at (0x[0-9a-f]+)", stdout, re.MULTILINE).group(1), 16)


# ---- what the MPI libraries obey --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mpi", LIBRARIES)
def test_a_plain_connection_writes_where_a_frame_says(jobs, mpi):
    """S2: that the attack below works, with MPISEC_CONNECTIONS=plain: a forged put changes the other process's memory, without any error."""
    job = jobs(mpi, "plain")
    written = attack(job, of_kind("match", "am02"), f"insert:{put(mpi, leave_alone(job).result.stdout)}")
    assert written.outcome == DIFFERENT and "rank 1 memory" in written.story, written.story
    assert "rank 1 end" in written.said and "mpisec" not in written.said, written.story


def test_a_plain_connection_reads_what_a_frame_asks_for(jobs):
    """S1: that the attack below works, with MPISEC_CONNECTIONS=plain: UCX answers a forged get with memory in clear."""
    job = jobs("mpich-4", "plain")
    request = get(leave_alone(job).result.stdout, "m0d")  # the frame says its sender's endpoint there
    read = attack(job, of_kind("am09"), f"insert:{request}")
    assert read.outcome == CLEAR, read.story


@pytest.mark.parametrize("mpi", LIBRARIES)
def test_nothing_is_written_where_a_frame_says(jobs, mpi):
    """S2: the same bytes, by default: no memory changes, and MPIsec ends the job and says on which connection they came."""
    job = jobs(mpi)
    frame = put(mpi, leave_alone(job).result.stdout)
    written = attack(job, of_kind("sealed"), f"insert:{frame}")  # enough comes behind it for whatever length the bytes are taken for
    assert written.ended() and re.search(NOT_SENT, written.said), written.story


def test_nothing_is_read_that_a_frame_asks_for(jobs):
    """S1: UCX's get, by default: nothing comes back, and MPIsec ends the job and says on which connection it came."""
    rendezvous = of_kind("am09")(leave_alone(jobs("mpich-4", "plain")).frames)
    job = jobs("mpich-4")
    request = get(leave_alone(job).result.stdout, rendezvous.shown[13:21].hex())
    read = attack(job, of_kind("sealed"), f"insert:{request}")
    assert read.ended() and re.search(NOT_SENT, read.said), read.story


# ---- every change of what is sent -------------------------------------------------------------------------------------------------


PLACES = {
    "hello": lambda frames: next(frame for frame in frames if frame.kind == "hello" and frame.sender == 1),
    "first": lambda frames: next(frame for frame in frames if frame.kind == "early"),
    "late": of_kind("record"),
    "long": of_kind("sealed"),
}
CHANGES = {
    "hello": ["flip:magic:0", "flip:nonce:100", "dup", f"insert:{GARBAGE}"],
    "first": ["flip:length:31", "flip:content:0", "flip:tag:0", "dup"],
    "late": ["flip:length:30", "flip:passing:0", "flip:content:77", "flip:tag:127", "drop", "dup", "replay:1", "cut:1", "extend:1", f"insert:{GARBAGE}"],
    "long": ["flip:length:0", "flip:content:0", "swap", "drop"],
}


@pytest.mark.parametrize("place", CHANGES)
@pytest.mark.parametrize("mpi,connections", ALL)
def test_changes_on_the_way(jobs, mpi, connections, place):
    """S2, S3, S8: a hello or record that is changed, dropped, repeated, moved or preceded by others ends the job, in time, and nobody gets anything
    else. A library that has another connection may go on with that one: then the changed one was refused."""
    job = jobs(mpi, connections)
    sentences = 0
    for change in CHANGES[place]:
        changed = attack(job, PLACES[place], change)
        refused = changed.outcome == AS_PLAIN and "was refused" in changed.said
        assert changed.ended() or refused, changed.story
        sentences += bool(re.search(f"{NOT_SENT}|{FOREIGN}|{UNKNOWN}", changed.said))
    assert sentences >= len(CHANGES[place]) - 2, changed.story


@pytest.mark.parametrize("mpi,connections", ALL)
def test_changes_at_the_end(jobs, mpi, connections):
    """S8: as above, of what the MPI library sends in its own MPI_Finalize, last but one."""
    changed = attack(jobs(mpi, connections), lambda frames: sent(frames, {"record"})[-2], "flip:tag:0")
    assert changed.ended(), changed.story


@pytest.mark.parametrize("mpi,connections", ALL[:1])
def test_the_rest_of_what_was_sent(jobs, mpi, connections):
    """S2, S8: what was sent at once came in several records, and a later one is changed: whoever waits for the rest hears of it. (UCX and libfabric send
    no more at once than one record holds.)"""
    def behind_unfinished(frames):
        there = sent(frames, {"record"}, receiver=2)
        return there[1 + next(i for i, frame in enumerate(there) if frame.shown[3] & MORE)]

    changed = attack(jobs(mpi, connections, ranks=4), behind_unfinished, "flip:tag:0")  # ranks of a node send each other's blocks at once
    assert changed.ended() and re.search(NOT_SENT, changed.said), changed.story


@pytest.mark.parametrize("mpi,connections", ALL)
def test_changed_sealed_bytes(jobs, mpi, connections):
    """S2: bytes that MPIsec had sealed already have no second tag: the message that they are of is not accepted."""
    changed = attack(jobs(mpi, connections), of_kind("sealed"), "flip:sealed:100000")
    assert changed.ended(), changed.story
    assert changed.outcome == REFUSED and not re.search(NOT_SENT, changed.said), changed.story


# ---- whom a connection is with ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mpi,connections", ALL)
def test_led_elsewhere(jobs, mpi, connections):
    """S2: who connects to rank 2 is led to rank 3 of its node, which has the same key: the addresses are in the keys of a connection. The job ends, or
    goes on with the connection that rank 2 makes."""
    job = jobs(mpi, connections, ranks=4, settings={"BELOW_LEAD": "2>3"})
    for _ in range(2 * TRIES):  # rank 2 may have been the first to connect
        led = Attacked(job)
        if led.led:
            break
    assert led.led and (led.ended() or led.outcome == AS_PLAIN), led.story
    assert re.search(UNKNOWN, led.said), led.story


@pytest.mark.parametrize("mpi,connections", ALL)
def test_another_key(jobs, mpi, connections, tmp_path):
    """S5, S7: a node that has another key file."""
    job = jobs(mpi, connections)
    other = tmp_path / "key"
    subprocess.run([str(places.find_mpisec()), "key", "new", str(other)], check=True, capture_output=True)
    result = job.cluster.run([job.victim], ranks=2, mpi=mpi, env=job.settings, node_key={1: other}, timeout=20, mpisec=job.binary)
    assert result.returncode != 0 and not result.timed_out, result.stdout + result.stderr
    assert re.search(UNKNOWN, result.stderr), result.stderr


@pytest.mark.parametrize("mpi,connections", ALL)
def test_a_node_with_plain_connections(jobs, mpi, connections):
    """S7: a node whose ranks do not authenticate what they send."""
    job = jobs(mpi, connections)
    settings = {name: value for name, value in job.settings.items() if not name.startswith("MPISEC_STALL")}
    result = job.cluster.run([job.victim], ranks=2, mpi=mpi, env=settings, node_env={1: {"MPISEC_CONNECTIONS": "plain"}}, timeout=30,
                             mpisec=job.binary)
    assert result.returncode != 0 and not result.timed_out, result.stdout + result.stderr
    assert re.search(FOREIGN, result.stderr), result.stderr


@pytest.mark.parametrize("text,sentence", [("GET / HTTP/1.0", FOREIGN), ("MPIsecC1" + "?" * 24 + "!" * 100, UNKNOWN)], ids=["foreign", "false"])
@pytest.mark.parametrize("mpi,connections", ALL)
def test_a_stranger(jobs, mpi, connections, text, sentence):
    """S2: who connects to where a rank listens, and says something else, or begins as MPIsec does and has no key, is refused and named, and the job
    goes on."""
    visited = Attacked(jobs(mpi, connections), only=["stranger", text])
    assert visited.outcome == AS_PLAIN, visited.story
    assert "bytes refused" in visited.said and "bytes kept" not in visited.said, visited.story
    assert re.search(sentence, visited.said) and ", and was refused" in visited.said, visited.story


@pytest.mark.parametrize("text", ["GET / HTTP/1.0", "MPIsecC1" + "?" * 24 + "!" * 100], ids=["foreign", "false"])
@pytest.mark.parametrize("mpi,connections", ALL)
def test_a_crowd(jobs, mpi, connections, text):
    """What a rank keeps of strangers does not add up. (Without the library below, which knows a few hundred connections.)"""
    job = jobs(mpi, connections)
    settings = {name: value for name, value in job.settings.items() if not name.startswith("MPISEC_STALL")}
    result = job.cluster.run([job.victim, "crowd", text], ranks=2, mpi=mpi, env=settings, timeout=60, mpisec=job.binary).check()
    came = [int(number) for number in re.findall(r"^crowd of (\d+)$", result.stdout, re.MULTILINE)]
    assert len(came) == 2 and came[1] >= VISITS, result.stdout + result.stderr
    assert int(re.search(r"^crowd took (-?\d+) bytes$", result.stdout, re.MULTILINE)[1]) < 100 * VISITS, result.stdout


@pytest.mark.parametrize("mpi,connections", ALL)
def test_a_beginning_once_more(jobs, mpi, connections):
    """S3: what a connection began with, sent once more to where it went: the MPI library closes it, or nothing comes of it."""
    visited = Attacked(jobs(mpi, connections), only=["again"])
    assert re.search(r"stranger of [1-9]\d+ bytes", visited.said), visited.story
    assert visited.outcome == AS_PLAIN or visited.ended(), visited.story
