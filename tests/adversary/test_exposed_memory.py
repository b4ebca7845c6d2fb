"""What the MPI library itself opens to the network (S1, S2): memory that it registers for one-sided operations, which whoever can write to
its connections may read and write, past MPIsec. MPICH registers that of every window unless it is told otherwise (library_settings.cpp)."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from mpisec_lab import places

BELOW = Path(__file__).parent / "below"
sys.path.insert(0, str(BELOW))

from below import MARKER, SECTIONS, Jobs  # noqa: E402

RANKS = 4
REGISTERING = {"MPIR_CVAR_CH4_OFI_ENABLE_RMA": "1"}
BYTES = 200  # that the attacker asks for


@pytest.fixture
def jobs(cluster, compile_mpi):
    """jobs(mpi, settings): a Jobs whose program has windows (below/exposed.c)."""

    def jobs_(mpi, settings=None):
        made = Jobs(mpi, RANKS, places.find_mpisec(), settings, cluster(2))
        made.victim = compile_mpi(BELOW / "exposed.c", mpi, flags=["-std=gnu11", "-ldl"])
        return made

    return jobs_


def told_by_libfabric(job, how):
    """What libfabric tells of what the library asks it for."""
    trace = {"FI_HOOK": "trace", "FI_LOG_LEVEL": "trace", "BELOW_CLEAR": MARKER}
    result = job.cluster.run([job.victim, how], ranks=RANKS, mpi=job.mpi, env=job.settings | trace, timeout=60, mpisec=job.binary)
    said = result.check().stdout + result.stderr
    assert "Installing trace hook" in said
    return said


def registered(job, how):
    """The keys of the memory that the library has registered with the network."""
    return set(re.findall(r"requested_key: (0x[0-9a-f]+)", told_by_libfabric(job, how)))


def read_from_the_network(job, how, key):
    """Whether memory under that key crossed in clear when the attacker asked the last rank for it."""
    between = [frame for frame in job.record([how]) if (frame.sender, frame.receiver) == (0, RANKS - 1) and SECTIONS[frame.section] != "start"]
    result, directory = job.run(f"0>{RANKS - 1}#{between[1].number} read:{key}:0:{BYTES}", [how])
    hit, clear = list(directory.glob("hits-*")), list(directory.glob("clear-*"))
    shutil.rmtree(directory)
    assert hit, result.stdout + result.stderr  # the request was sent
    return bool(clear)


@pytest.mark.parametrize("mpi", ["mpich-5", "mpich-5-abi"])
@pytest.mark.parametrize("how", ["across", "inside", "dynamic"])
def test_no_window_is_registered(jobs, mpi, how):
    """S1, S2: of all ranks, of a node's ranks, and of memory that is attached, where MPICH would register the whole address space. For memory of
    the program that crosses nodes the library has a window around nothing, whatever the user has set; that of a node is the library's own."""
    assert not registered(jobs(mpi), how)
    assert bool(registered(jobs(mpi, REGISTERING), how)) == (how == "inside")


def test_a_window_is_not_read_from_the_network(jobs):
    """S1: the attack works where the user has MPICH register the windows of a node, and not otherwise."""
    registering = jobs("mpich-5", REGISTERING)
    (key,) = registered(registering, "inside")
    assert read_from_the_network(registering, "inside", key)
    assert not read_from_the_network(jobs("mpich-5"), "inside", key)


def test_no_active_messages(jobs):
    """S2: MPICH's put and get requests in messages without a tag, which do not ask where a window ends: there is no receive for them."""
    def listens(settings):
        return "trace_recvmsg" in told_by_libfabric(jobs("mpich-5", settings), "across")

    assert listens({"MPIR_CVAR_CH4_OFI_ENABLE_AM": "1"})
    assert not listens({})
