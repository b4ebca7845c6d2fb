"""Start-up of a session's group and of a spawned world while somebody changes what travels between the processes (S1, S2, S5, S8): no
communicator comes out, and somebody says why."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mpisec_lab import places

HERE = Path(__file__).parent
FORGER = HERE.parent / "keys" / "forger.c"
INITIATION, ANSWER, JOB_SECRET, COUNT = 1, 2, 3, 4  # tags of src/shim/startup/key_exchange.cpp
CHANGED = "something between the nodes changes messages"


@pytest.fixture
def attacked(compile_mpi, run):
    """attacked(rank, modes, **forger settings): the Result of realms.c on two nodes where `rank` forges."""

    def attack(rank, modes=("session",), ranks=2, env=None, mpi="mpich-5", **settings):
        app = compile_mpi(HERE / "realms.c", mpi, flags=["-std=gnu11"])
        forger = compile_mpi(FORGER, mpi, flags=["-shared", "-fPIC"], name="forger.so")
        environment = {"LD_PRELOAD": str(forger), "FORGER_RANK": str(rank), "MPISEC_AEAD": "openssl:aes-256-gcm"}
        environment |= {f"FORGER_{name.upper()}": value for name, value in settings.items()} | (env or {})
        return run([app, *modes], nodes=2, ranks=ranks, mpi=mpi, env=environment, timeout=40)

    return attack


def refused(result, *words):
    everything = result.stdout + result.stderr
    assert result.returncode not in (0, 124), everything
    assert not re.search(r"\d (session|spawn|child) fine", result.stdout), everything
    said = [line for line in everything.splitlines() if line.startswith("mpisec: rank ")]
    assert any(all(word in line for word in words) for line in said), everything


def test_untouched_session_starts(attacked):
    result = attacked(0)
    assert result.returncode == 0 and result.stdout.count("session fine") == 2, result.stdout + result.stderr


@pytest.mark.parametrize(
    "rank, change, words",
    [
        (1, f"{INITIATION}:0", [CHANGED]),
        (1, f"{INITIATION}:40", ["changed the message"]),
        (0, f"{ANSWER}:40", ["answer", CHANGED]),
        (0, f"{JOB_SECRET}:5", ["job secret", CHANGED]),
        (1, f"{COUNT}:0", ["confirmation", CHANGED]),
        (0, f"{JOB_SECRET}:-20", ["job secret", CHANGED]),
    ],
)
def test_changed_message(attacked, rank, change, words):
    """Each message of the handshake of a session's group."""
    refused(attacked(rank, send=change), *words)


@pytest.mark.parametrize("byte, words", [(100, [CHANGED]), (204, ["another call or other arguments"]), (220, [CHANGED])], ids=["nonce", "purpose", "side"])
def test_changed_hello(attacked, byte, words):
    """Of another rank; nonce, the call that it makes, and its side of a communicator between groups."""
    refused(attacked(1, hello=f"0:{byte}"), *words)


def test_forged_node_id_never_makes_a_process_local(attacked):
    """S1: a process on another node whose hello was made to say "here" is not taken for local: what is on one node is proven."""
    refused_by = attacked(1, hello="0:node-id", env={"MPISEC_NODE_TIME": "2", "MPISEC_STALL_TIME": "5", "MPISEC_STALL_ACTION": "abort"})
    assert refused_by.returncode != 0 and "session fine" not in refused_by.stdout, refused_by.stdout + refused_by.stderr


def test_cards_of_several_processes(attacked):
    """Each process of a session has a card of its own: one that has two is refused before anything is derived from it."""
    refused(attacked(2, ranks=3, hello="0:here"), CHANGED)


@pytest.mark.parametrize("change", [f"{ANSWER}:40", f"{JOB_SECRET}:5"])
def test_changed_message_between_worlds(attacked, change):
    """The spawning world, of one process, is the one that forges: its own start-up has no such message."""
    refused(attacked(0, ["init", "spawn"], ranks=1, send=change), CHANGED)


def test_a_child_without_mpisec_is_an_error(compile_mpi, run):
    """S1: nothing is sent to it, and the job ends; not for the time after which waits are only reported."""
    app = compile_mpi(HERE / "realms.c", "mpich-5", flags=["-std=gnu11"])
    result = run([app, "init", "bare"], nodes=2, ranks=2, env={"MPISEC_JOIN_TIME": "4", "MPISEC_STALL_TIME": "1000"}, timeout=40)
    assert result.returncode not in (0, 124), result.stdout + result.stderr
    assert "came out" not in result.stdout
    assert "the other world does not answer: it is not protected" in result.stderr, result.stderr


def test_another_key_is_an_error(tmp_path, run, compile_mpi):
    """S5: processes of a session without the same key get no communicator together."""
    app = compile_mpi(HERE / "realms.c", "mpich-5", flags=["-std=gnu11"])
    other = tmp_path / "key"
    subprocess.run([places.find_mpisec(None), "key", "new", other], check=True, capture_output=True)
    result = run([app, "session"], nodes=2, ranks=2, node_key={1: str(other)}, timeout=40)
    refused(result, "has another key than this one")


@pytest.mark.parametrize("nodes", [2, 1])
def test_all_ranks_hear_that_nothing_can_be_spawned(compile_mpi, run, tmp_path, nodes):
    """S1 S8: where bin/mpisec is missing nothing is spawned, and no rank waits for it."""
    built = Path(places.find_mpisec(None)).resolve().parent.parent
    for name in ("lib/libmpisec-mpich.so", "lib/mpisec/libmpisec-aead-openssl.so", "bin/mpisec"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built / name, tmp_path / name)
    renamed = tmp_path / "bin" / "mpisec-by-another-name"
    (tmp_path / "bin" / "mpisec").rename(renamed)
    app = compile_mpi(HERE / "realms.c", "mpich-5", flags=["-std=gnu11"])
    result = run([app, "init", "commandless"], nodes=nodes, ranks=2, mpisec=renamed, env={"MPISEC_AEAD": "openssl:aes-256-gcm"}, timeout=40)
    assert result.returncode == 0 and result.stdout.count("commandless fine") == 2, result.stdout + result.stderr
    assert "bin/mpisec is not beside MPIsec's libraries" in result.stderr, result.stderr
