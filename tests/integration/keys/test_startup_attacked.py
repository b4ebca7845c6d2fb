"""Start-up while somebody changes what travels between the nodes (S1, S2, S5, S7, S8): no job starts, and somebody says why.

forger.c is preloaded under MPIsec and plays the network."""

import pathlib
import re
import time

import pytest

HERE = pathlib.Path(__file__).parent
MPI = "mpich-5"
INITIATION, ANSWER, JOB_SECRET, COUNT = 1, 2, 3, 4  # tags of src/shim/startup/key_exchange.cpp
CARDS = 32767  # tag of src/shim/startup/card_exchange.cpp
CHANGED = "something between the nodes changes messages"


@pytest.fixture
def attacked(compile_mpi, run):
    """attacked(rank, **forger settings): the Result of a job of two nodes where `rank` forges."""

    def attack(rank, ranks=2, env=None, mpi=MPI, **settings):
        app = compile_mpi(HERE / "startup.c", mpi)
        forger = compile_mpi(HERE / "forger.c", mpi, flags=["-shared", "-fPIC"], name="forger.so")
        environment = {"LD_PRELOAD": str(forger), "FORGER_RANK": str(rank), "MPISEC_AEAD": "openssl:aes-256-gcm"}
        environment |= {f"FORGER_{name.upper()}": value for name, value in settings.items()} | (env or {})
        return run([app], nodes=2, ranks=ranks, mpi=mpi, env=environment, timeout=25)

    return attack


def refused(result, *words):
    assert result.returncode not in (0, 124), result.stdout + result.stderr
    assert not re.search(r"right \d", result.stdout), "a rank came out of MPI_Init"
    said = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("mpisec: rank ")]
    assert any(all(word in line for word in words) for line in said), result.stdout + result.stderr


def test_untouched_job_starts(attacked):
    assert attacked(0).returncode == 0


@pytest.mark.parametrize(
    "rank, tag, byte, words",
    [
        (1, INITIATION, 0, ["rank 0", "rank 1 (node1)", CHANGED]),
        (1, INITIATION, 32, ["rank 0", "rank 1 (node1)", "uses the cipher"]),
        (1, INITIATION, 36, ["rank 0", "rank 1 (node1)", "changed the message"]),
        (1, INITIATION, 83, ["rank 0", "rank 1 (node1)", "changed the message"]),
        (0, ANSWER, 0, ["rank 1", "rank 0 (node0)", CHANGED]),
        (0, ANSWER, 47, ["rank 1", "rank 0 (node0)", CHANGED]),
        (0, JOB_SECRET, 5, ["rank 1", "rank 0 (node0)", "job secret", CHANGED]),
        (0, JOB_SECRET, 40, ["rank 1", "rank 0 (node0)", "job secret", CHANGED]),
        (1, COUNT, 0, ["rank 0", "rank 1 (node1)", "confirmation", CHANGED]),
    ],
)
def test_changed_message(attacked, rank, tag, byte, words):
    refused(attacked(rank, send=f"{tag}:{byte}"), *words)


@pytest.mark.parametrize("by", ["+1", "-1", "+100", "-20"])
@pytest.mark.parametrize("rank, tag", [(1, INITIATION), (0, ANSWER), (0, JOB_SECRET), (1, COUNT)])
def test_message_of_another_length(attacked, rank, tag, by):
    refused(attacked(rank, send=f"{tag}:{by}"), CHANGED)


@pytest.mark.parametrize("rank, tag, what", [(1, INITIATION, "first message"), (0, JOB_SECRET, "job secret from rank")])
def test_dropped_message(attacked, rank, tag, what):
    env = {"MPISEC_STALL_TIME": "2", "MPISEC_STALL_ACTION": "abort"}
    begun = time.monotonic()
    refused(attacked(rank, send=f"{tag}:drop", env=env), "has waited", what)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("mpi, rank", [("mpich-5", 4), ("openmpi-5", 3)])
@pytest.mark.parametrize("what", ["100", "260", "264", "-20", "-276", "+12", "+276"])
def test_cards_that_are_passed_on(attacked, what, mpi, rank):
    """What a rank sends on for others: a bit of the nonce changed, of the number of runs, of a run's first rank; a part missing, a whole card, a
    run too many, a card too many."""
    result = attacked(rank, ranks=9, mpi=mpi, send=f"{CARDS}:{what}")
    assert result.returncode != 0, result.stdout + result.stderr  # Open MPI's launcher may hang after MPI_Abort
    assert not re.search(r"right \d", result.stdout), "a rank came out of MPI_Init"
    assert "mpisec: rank " in result.stdout + result.stderr or what in ("+12", "+276")  # on a truncated message the MPI library ends the job


@pytest.mark.parametrize("byte", [40, 100, 200], ids=["host", "nonce", "cpus"])
def test_changed_hello_of_another_rank(attacked, byte):
    """Whatever was changed on the way to one node, the hash of all cards tells."""
    refused(attacked(1, hello=f"0:{byte}"), CHANGED)


@pytest.mark.parametrize("rank, of", [(2, 2), (0, 2)])
def test_affinity_of_a_node_changed(attacked, rank, of):
    """On the way to its own node, and to another."""
    refused(attacked(rank, ranks=4, hello=f"{of}:apart"), CHANGED)


@pytest.mark.parametrize("rank, of", [(2, 3), (0, 3), (1, 1)])
def test_a_rank_taken_out(attacked, rank, of):
    refused(attacked(rank, ranks=4, hello=f"{of}:away"), CHANGED)


def test_changed_setting_looks_like_another_setting(attacked):
    refused(attacked(1, hello="0:136"), "MPISEC_PIPELINE_THRESHOLD")


def test_changed_name_of_the_job(attacked):
    """Two jobs with one key: a hello of another job is refused (docs/formal/two_jobs.vp)."""
    refused(attacked(1, hello="0:232"), "rank 0 (node0)", "is of another job")


@pytest.mark.parametrize("mpi", ["mpich-5", "mpich-4", "openmpi-5", "openmpi-4", "impi"])
def test_the_launchers_name_of_a_job(attacked, mpi):
    """Each MPI's own launcher names the job, alike on all nodes, or no job would start. Open MPI's by host and process id, which jobs in
    the lab's namespaces may share; the others' each in another way."""
    said = [attacked(0, hello="1:job", mpi=mpi).check().stdout for _ in range(2)]
    marks = [re.findall(r"^job ([0-9a-f]{32})$", text, re.MULTILINE) for text in said]
    assert all(len(found) == 1 and int(found[0], 16) != 0 for found in marks), said
    assert marks[0] != marks[1] or mpi.startswith("openmpi"), marks


def test_own_hello_changed(attacked):
    refused(attacked(1, hello="1:100"), "came back changed")


@pytest.mark.parametrize("rank, hello, ranks", [(1, 0, 2), (1, 3, 4), (2, 0, 4)])
def test_forged_place_never_makes_a_rank_local(attacked, rank, hello, ranks):
    """S1: a rank on another node that was moved to this node's card is not taken for local; nor where it would lead the node, being the lowest of
    its ranks."""
    refused(attacked(rank, ranks=ranks, hello=f"{hello}:here", env={"MPISEC_NODE_TIME": "2"}), "set MPISEC_NODE_TIME to more")


def test_forged_place_on_the_way_to_all(attacked):
    """The first rank sends the hellos on: all see the forged one, the rank that it is of too."""
    result = attacked(0, ranks=4, hello="3:here", way="out", env={"MPISEC_NODE_TIME": "2"})
    refused(result)
    assert "came back changed" in result.stderr or "says that it is on this node" in result.stderr or "did not arrive" in result.stderr


def test_one_process_for_each_place_of_a_node(compile_mpi, run):
    """S4: of two processes that come to a node's memory as the same rank, as one of another job can that was led here, one does not start: both
    would have that rank's keys and counters."""
    taker = compile_mpi(HERE / "place_taker.c", MPI, flags=["-shared", "-fPIC"], name="place_taker.so")
    env = {"LD_PRELOAD": str(taker), "MPISEC_NODE_TIME": "5"}
    app = compile_mpi(HERE / "startup.c", MPI)
    assert run([app], nodes=2, ranks=6, env=env | {"PLACE_TAKER_RANK": "none"}, timeout=25).returncode == 0
    refused(run([app], nodes=2, ranks=6, env=env | {"PLACE_TAKER_RANK": "2"}, timeout=25), "rank 2", "Another process has taken the place")
