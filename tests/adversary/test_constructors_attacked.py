"""Attacks on what the MPI library exchanges in clear to make communicators (S1, S2): a library under MPIsec (liar.c) makes all
ranks believe the same lie. No rank gets a communicator that has other ranks, another order or another topology than called for; a
session's group counts as inside a node only when that is proven without the network, and is sealed otherwise."""

import os
import re
import sys
from pathlib import Path

import pytest

from mpisec_lab.capture import count

HERE = Path(__file__).parent
MPIS = ["mpich-5", "openmpi-5"]
# Ranks that are no members and so get none.
OUTSIDE = {"create_group": {3}, "create_group-private": {3}, "cart-small": {3}, "graph-small": {3}}
CASES = re.findall(r'^    \{"([^"]+)", ', (HERE / "victim_constructors.c").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def constructors(run, compile_mpi):
    """constructors(mpi, lying): the job's result and {(case, lied): {rank: what it said}}; it runs once."""
    done = {}

    def make(mpi, lying, plain=False, case=None):
        key = mpi, lying, plain, case
        if key not in done:
            victim = compile_mpi(HERE / "victim_constructors.c", mpi, flags=["-std=gnu11"])
            env = {"LD_PRELOAD": liar(compile_mpi, mpi)} if lying else {}
            arguments = (["lie"] if lying else []) + ([case] if case else [])
            result = run([victim, *arguments], nodes=2, ranks=4, mpi=mpi, plain=plain, env=env, timeout=120)
            said = {}
            for rank, name, lied, text in re.findall(r"^rank (\d) (\S+?)( lied)?: (.*)$", result.stdout, re.MULTILINE):
                said.setdefault((name, bool(lied)), {})[int(rank)] = text
            done[key] = result, said
        return done[key]

    return make


def liar(compile_mpi, mpi):
    return compile_mpi(HERE / "liar.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"], name="liar.so")


@pytest.mark.parametrize("mpi", MPIS)
def test_every_constructor_gives_what_was_called_for(constructors, mpi):
    """M11: without an attack every constructor gives the ranks and the order that the standard says."""
    result, said = constructors(mpi, False)
    everything = result.stdout + result.stderr[-4000:]
    assert "all done" in result.stdout, everything
    for case in CASES:
        for rank in range(4):
            expected = "none" if rank in OUTSIDE.get(case, ()) else "right"
            assert said[case, False][rank] == expected, f"{case}, rank {rank}\n{everything}"
    assert "mpisec" not in result.stderr, result.stderr


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mpi", MPIS)
def test_a_lie_about_a_communicator_is_found(constructors, mpi, case):
    """S2: a communicator with other ranks, order or topology is not handed out, but MPIsec's integrity error raised, on every
    rank; and the same call is right when it is not attacked."""
    result, said = constructors(mpi, True)
    everything = "\n".join(f"{key}: {value}" for key, value in said.items() if key[0] == case) + result.stderr[-4000:]
    for rank in {0, 1, 2, 3} - OUTSIDE.get(case, set()):
        text = said[case, True].get(rank, "nothing")
        assert text.startswith("error MPIsec integrity error: the MPI library made another communicator"), f"rank {rank}: {text}\n{everything}"
        assert said[case, False].get(rank) == "right", f"afterwards, rank {rank}\n{everything}"


@pytest.mark.parametrize("case", ["dup", "cart_sub", "merge"])
def test_plain_falls_to_the_lies(constructors, case):
    """The same lies on plain MPI get through: what these tests show is MPIsec's doing."""
    _, said = constructors("mpich-5", True, plain=True, case=case)
    assert len(said[case, True]) == 4 and all(text.startswith("OTHER ranks") for text in said[case, True].values()), said


@pytest.fixture(scope="module")
def sessions(run, compile_mpi):
    """sessions(mpi, nodes, ranks, *arguments): what each process of sessions.c said, and whether /dev/shm is clean."""

    def make(mpi, nodes, ranks, *arguments, lying=True, **options):
        program = compile_mpi(HERE / "sessions.c", mpi, flags=["-std=gnu11"])
        env = {"MPISEC_NODE_TIME": "4"}  # processes of two nodes wait for each other in vain
        if lying:
            env |= {"LD_PRELOAD": liar(compile_mpi, mpi), "MPISEC_LAB_LIE": "shared"}
        result = run([program, *arguments], nodes=nodes, ranks=ranks, mpi=mpi, env=env, timeout=90, **options)
        everything = result.stdout + result.stderr[-4000:]
        assert not result.timed_out, everything
        assert "left in /dev/shm" not in result.stdout, everything
        return result, re.findall(r"^process (\d): (.*)$", result.stdout, re.MULTILINE), everything

    return make


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("model", ["sessions", "world"])
def test_a_session_across_nodes_is_sealed(sessions, cluster, tmp_path, mpi, model):
    """S1: the library says that all processes are on one node; what they send is sealed all the same, whether MPI_Init was called or not."""
    with cluster(2).capture(tmp_path / "pcap") as capture:
        _, said, everything = sessions(mpi, 2, 2, model, "all")
    assert sorted(said) == [("0", "2"), ("1", "2")], everything
    assert count(capture.streams(), b"what sessions.c sends, not for the wire") == 0


@pytest.mark.parametrize("mpi", MPIS)
def test_sessions_inside_a_node_work(sessions, mpi):
    """Processes that share memory get their communicator, also for several groups with one tag and for the same call twice."""
    _, said, everything = sessions(mpi, 1, 4, "sessions", "all", "all", "pairs", "self", lying=False)
    assert sorted(said) == sorted([(str(rank), text) for rank in range(4) for text in ["4", "4", "2", "1"]]), everything


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user too")
@pytest.mark.parametrize("mpi", MPIS)
def test_another_user_cannot_take_a_sessions_name(sessions, cluster, mpi):
    """The name of the memory in which the processes of a group meet cannot be known in advance."""
    squatter = f"LD_PRELOAD= {sys.executable} {HERE / 'squatter.py'} org.example.tag 2"
    try:
        result, said, everything = sessions(mpi, 1, 2, "sessions", "all", lying=False, node_env={0: {"MPISEC_LAB_SQUATTER": squatter}})
    finally:
        cluster(1).execute(0, ["find", "/dev/shm", "-user", "65534", "-delete"])
    assert "names taken" in result.stdout, everything
    assert sorted(said) == [("0", "2"), ("1", "2")], everything


@pytest.mark.parametrize("mpi", MPIS)
def test_sessions_with_one_tag_are_not_mixed(sessions, mpi):
    """S1: two pairs across nodes with one tag, whose ranks 0 are on one node and ranks 1 on the other, are not taken for pairs of one
    node, though with the ranks of other pairs the list would be full; the pairs inside the nodes pass."""
    _, said, everything = sessions(mpi, 2, 4, "sessions", "across", "pairs")
    assert sorted(said) == sorted([(str(rank), "2") for rank in range(4) for _ in range(2)]), everything


@pytest.mark.parametrize("mpi", MPIS)
def test_a_session_inside_a_node_of_a_larger_world(sessions, mpi):
    """After MPI_Init the proven node map decides: pairs of a node get a communicator."""
    _, said, everything = sessions(mpi, 2, 4, "world", "pairs", "across")
    assert sorted(said) == sorted([(str(rank), "2") for rank in range(4) for _ in range(2)]), everything


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("model", ["sessions", "world"])
def test_the_programs_error_handler_hears_of_an_error(sessions, mpi, model):
    """The error handler in the call is the one that is called; no place for the result is an error."""
    _, said, everything = sessions(mpi, 2, 2, model, "handler", lying=False)
    assert sorted(said) == [("0", "handler called"), ("0", "refused"), ("1", "handler called"), ("1", "refused")], everything
    _, said, everything = sessions(mpi, 2, 2, model, "nowhere", lying=False)
    assert sorted(said) == [("0", "refused"), ("1", "refused")], everything


@pytest.mark.parametrize("mpi", MPIS)
def test_keys_of_a_session_that_is_refused_are_wiped(sessions, mpi):
    """S5: where the processes have agreed on keys and one that is not as it should be is not handed out, the keys are wiped at once."""
    _, said, everything = sessions(mpi, 2, 2, "sessions", "all", "lied", "all")
    outcome = ["2", "keys wiped", "refused", "2"]
    assert sorted(said) == sorted((str(rank), text) for rank in range(2) for text in outcome), everything


@pytest.mark.parametrize("call", ["dup", "split"])
def test_a_meeting_that_is_attacked_leaves_nobody_behind(run, compile_mpi, call):
    """S8: the rank that notices goes on through the meeting and MPI's constructor, where the others wait for it. What one does not know, because
    colours did not come, nobody makes."""
    adversary = compile_mpi(HERE / "adversary.c", "mpich-5", flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"], name="adversary.so")
    victim = compile_mpi(HERE / "victim_meeting.c", "mpich-5", flags=["-std=gnu11"])
    attack = {"LD_PRELOAD": adversary, "MPISEC_LAB_ATTACK": "flip-segment:1:-1"}
    result = run([victim, call], nodes=4, ranks=4, mpi="mpich-5", env=attack, timeout=30)
    said = sorted(re.findall(r"^rank \d: (\w+)$", result.stdout, re.MULTILINE))
    assert said == (["error", "made", "made", "made"] if call == "dup" else ["error"] * 4), result.stdout + result.stderr


@pytest.mark.parametrize("call, armed", [("group", 1), ("from_group", 1), ("intercomm", 0), ("intercomm", 1)])
def test_no_attacked_message_of_a_constructor_leaves_anybody_behind(run, compile_mpi, call, armed):
    """S8: whichever message of a rank is attacked before the library makes the communicator, each rank has it or an error, and none waits."""
    adversary = compile_mpi(HERE / "adversary.c", "mpich-5", flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"], name="adversary.so")
    victim = compile_mpi(HERE / "victim_meeting.c", "mpich-5", flags=["-std=gnu11"])

    def make(attack):
        result = run([victim, call, armed], nodes=4, ranks=4, timeout=30, env={"LD_PRELOAD": adversary, "MPISEC_LAB_ATTACK": attack})
        everything = attack + "\n" + result.stdout + result.stderr
        said = re.findall(r"^rank \d: (\w+)$", result.stdout, re.MULTILINE)
        assert len(said) == 4 and set(said) <= {"made", "error"}, everything
        return said, int(re.search(r"^(\d+) messages$", result.stdout, re.MULTILINE)[1]), everything

    said, messages, everything = make("count")
    assert said == ["made"] * 4 and messages >= 2, everything
    for number in range(1, messages + 1):
        said, _, everything = make(f"flip-segment:{number}:-1")
        assert "error" in said, everything


@pytest.mark.parametrize("call, nodes, armed", [("create", 4, 1), ("allocate", 2, 0), ("file", 4, 1)])
def test_a_window_that_is_attacked_leaves_nobody_behind(run, compile_mpi, tmp_path, call, nodes, armed):
    """S8: whichever block of a collective in a window's or a file's constructor is attacked on one rank, none waits, in it or in what it made,
    for one on which it failed: it fails on all, there or in the call that frees the window."""
    adversary = compile_mpi(HERE / "adversary.c", "mpich-5", flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"], name="adversary.so")
    victim = compile_mpi(HERE / "victim_meeting.c", "mpich-5", flags=["-std=gnu11"])

    def make(attack):
        what = tmp_path / "file" if call == "file" else call
        result = run([victim, what, armed], nodes=nodes, ranks=4, timeout=30, env={"LD_PRELOAD": adversary, "MPISEC_LAB_ATTACK": attack})
        everything = attack + "\n" + result.stdout + result.stderr
        said = re.findall(r"^rank \d: (\w+)$", result.stdout, re.MULTILINE)
        assert len(said) == 4, everything
        return said, int(re.search(r"^(\d+) messages$", result.stdout, re.MULTILINE)[1]), everything

    said, messages, everything = make("count")
    assert said == ["made"] * 4 and messages >= 4, everything
    for number in range(1, messages + 1):
        said, _, everything = make(f"flip-segment:{number}:-1")
        assert "error" in said and set(said) <= {"error", "failed"}, everything
