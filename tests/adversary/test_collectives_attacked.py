"""Attacks on collectives (S2, S3, S8): the network (adversary.c, under MPIsec) changes the messages between the nodes while
victim_collectives.c runs each collective; errors are returned.

Some rank has an error within seconds, every rank without one has exactly what was sent, no rank has a byte that nobody sent, and
the job goes on: the next collective is right."""

import re
import sys
from pathlib import Path

import pytest
from slow import slow

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration" / "mpi"))

from mpi_programs import YIELD, algorithms, build_collectives  # noqa: E402

SMALL, LARGE = 1000, 2 * 1024 * 1024  # the larger one takes several segments, also per block
JOB = ("mpich-5", 2, 4)
ATTACKS = ["flip-segment:1:0", "flip-segment:1:middle", "flip-segment:2:-1", "truncate-segment:1"]


@pytest.fixture(scope="module")
def attack(run, compile_mpi):
    """attack(kind, scenario, size, shape, job, **env): what each collective said, checked. A job is (MPI, nodes, ranks)."""

    def attack_(kind, scenario="one", size=SMALL, shape=0, job=JOB, **env):
        mpi, nodes, ranks = job
        library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"],
                              name="adversary.so")
        victim = build_collectives(compile_mpi, mpi, HERE / "victim_collectives.c")
        result = run([victim, scenario, size, shape, "all"], nodes=nodes, ranks=ranks, mpi=mpi, timeout=60,
                     env=YIELD | {"LD_PRELOAD": library, "MPISEC_LAB_ATTACK": kind} | env)
        nth = int(kind.split(":")[1]) if ":" in kind else 1
        return check(result, 2 if scenario in ("again", "together") else 1, ranks, None if kind == "count" else nth)

    return attack_


def check(result, calls, ranks, nth):
    """The names of the collectives. Those of which some rank sends `nth` messages to other nodes in one call were attacked."""
    everything = result.stdout[-6000:] + result.stderr[-4000:]
    assert not result.timed_out, "the job hung\n" + everything
    assert result.returncode == 0, everything
    said = re.findall(r"^rank (\d+) (\w+) (\d): (.*); ([\d.]+) s; buffer (\w+)$", result.stdout, re.MULTILINE)
    passed = re.findall(r"^adversary: rank \d+ (\w+) passed (\d+)$", result.stdout, re.MULTILINE)
    attacked = {name for name, count in passed if nth and int(count) >= nth}
    collectives = {}
    for rank, name, number, text, seconds, buffer in said:
        assert buffer == "clean" and not text.startswith("OTHER"), f"unauthenticated bytes reached the program: rank {rank} {name}: {text}\n{everything}"
        assert float(seconds) < 10, f"rank {rank} {name}: {seconds} s"
        collectives.setdefault(name, {}).setdefault(int(number), []).append(text)
    assert collectives, everything
    for name, by_call in collectives.items():
        lines = sum(by_call.values(), [])
        assert len(lines) == calls * ranks, f"{name}: {lines}\n{everything}"
        errors = [line for line in lines if line.startswith("error ")]
        if name not in attacked:
            assert not errors, f"{name}: {errors}\n{everything}"
        else:
            assert any("MPIsec" in line for line in errors), f"{name}: nobody noticed: {lines}\n{everything}"
    after = re.findall(r"^rank \d+ (\w+) after: (\w+)$", result.stdout, re.MULTILINE)
    assert len(after) == ranks * len(collectives) and all(word == "fine" for _, word in after), everything
    assert attacked or not nth, everything
    return set(collectives)


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_the_network_without_an_attack(attack, mpi):
    """The adversary that changes nothing changes nothing, and sees all but what has no payload elsewhere."""
    assert len(attack("count", job=(mpi, 2, 4))) == 22


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("kind", ATTACKS)
def test_changed_messages(attack, kind, mpi, size):
    """S2 S8: a changed or cut message is an error on some rank; the others have what was sent."""
    attack(kind, size=size, job=(mpi, 2, 4))


@pytest.mark.parametrize("mpi,size", [("mpich-5", SMALL), ("mpich-5", LARGE), ("openmpi-5", SMALL)])
def test_longer_messages(attack, mpi, size):
    """S2 S8: so is one that was made longer. (Open MPI itself overruns the receive buffer with large ones: docs/threat-model.md.)"""
    attack("extend-segment:1", size=size, job=(mpi, 2, 4))


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_replay_of_a_whole_collective(attack, mpi, size):
    """S3: all that an earlier collective of the same kind and size sent is not taken for this one."""
    attack("replay-all", "again", size=size, job=(mpi, 2, 4))


@pytest.mark.parametrize("mpi,size", [("mpich-5", SMALL), ("mpich-5", LARGE), ("openmpi-5", SMALL)])
def test_swap_between_communicators(attack, mpi, size):
    """S2: a message of another collective that is under way, on a duplicate of the communicator. (What comes late meets a receive for
    less: Open MPI itself overruns it with large messages.)"""
    attack("swap-rounds", "together", size=size, job=(mpi, 2, 4))


@pytest.mark.parametrize("shape", [1, 3, 11, 12], ids=["reversed", "columns", "groups", "merged-groups"])
@pytest.mark.parametrize("form", ["one", "nonblocking", "persistent"])
def test_other_forms_and_communicators(attack, form, shape):
    """S2 S8: non-blocking and persistent, on other communicators, between groups."""
    attack("flip-segment:1:middle", form, shape=shape)


@pytest.mark.parametrize("nodes,ranks,size", [(2, 4, SMALL), *slow((3, 5, LARGE))])
def test_every_algorithm(attack, nodes, ranks, size):
    """S2 S3 S8: every algorithm of every collective, some of them in each job."""
    known = algorithms()
    for turn in range(1, max(map(len, known.values()))):
        forced = {f"MPISEC_{name.upper()}": names[turn % len(names)] for name, names in known.items()}
        attack("flip-segment:1:middle", size=size, job=("mpich-5", nodes, ranks), **forced)
        attack("replay-all", "again", size=size, job=("mpich-5", nodes, ranks), **forced)
