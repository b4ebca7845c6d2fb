"""Messages put into MPI past MPIsec (inject.c), by another node and by a rank of the same node."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def inject(run, compile_mpi):
    """inject(receiver, count, bytes, way, mpi, **environment) on 2 nodes x 2 ranks: dict of what the receiver says; rank 0 injects."""

    def inject_(receiver, count=1, size=64, way="recv", mpi="mpich-5", **environment):
        program = compile_mpi(HERE / "inject.c", mpi, flags=["-std=gnu11", "-ldl"])
        result = run([program, receiver, count, size, way], nodes=2, ranks=4, mpi=mpi, timeout=30, env=environment)
        assert not result.timed_out and result.returncode == 0, result.stdout + result.stderr[-3000:]
        found = re.search(r"refused (\d+) delivered (\d+) end 0 4711 memory (\d+) MB", result.stdout)
        assert found, result.stdout + result.stderr[-3000:]
        return dict(zip(("refused", "delivered", "memory"), map(int, found.groups())))

    return inject_


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("way", ["recv", "any", "mprobe"])
def test_plaintext_from_another_node_is_refused(inject, mpi, way):
    """S2: bytes that MPIsec did not seal are the integrity error, and none of them is delivered."""
    assert inject(2, way=way, mpi=mpi).items() >= {"refused": 1, "delivered": 0}.items()


@pytest.mark.parametrize("size", [64, 65596])  # 65596: as long as the first part of a large message
def test_many_forged_messages_leave_the_job_running(inject, size):
    """S8: whoever can inject messages cannot fill MPI's queues with MPIsec's own answers to them."""
    assert inject(2, count=300, size=size).items() >= {"refused": 300, "delivered": 0}.items()


@pytest.mark.parametrize("way", ["any", "mprobe"])
def test_a_claimed_length_costs_no_memory(inject, way):
    """S8: the room for a message does not grow with the length that its unauthenticated envelope claims."""
    said = inject(2, size=300 << 20, way=way)
    assert said["delivered"] == 0 and said["memory"] < 150, said


@pytest.mark.parametrize("way,count", [("any", 1), ("mprobe", 5)])
def test_a_long_message_does_not_overrun_open_mpi(inject, way, count):
    """S2: Open MPI writes past the end of a buffer that is shorter than a rendezvous message: where a probe has told the length, it is
    given one that is long enough. (A receive that is posted before the message comes cannot be; that falls plain too.)"""
    assert inject(2, count=count, size=300000, way=way, mpi="openmpi-5").items() >= {"refused": count, "delivered": 0}.items()


WAYS = ["recv", "any", "mprobe", "irecv", "irecv-any", "persistent", "sendrecv", "improbe"]
REFUSED, DELIVERED = {"refused": 1, "delivered": 0}.items(), {"refused": 0, "delivered": 1}.items()


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
@pytest.mark.parametrize("way", WAYS)
def test_same_node_is_verified(inject, mpi, way):
    """S2: what comes from a rank of the node past MPIsec has no record in the node's memory: refused and wiped, by default."""
    assert inject(1, way=way, mpi=mpi).items() >= REFUSED


@pytest.mark.parametrize("size", [0, 1, 40, 41, 64, 63, 300000])
def test_same_node_is_verified_at_every_length(inject, size):
    """S2: whether the record holds the message itself, its MAC, or the receive is too short for what was forged."""
    said = inject(1, size=size, MPISEC_SAME_NODE="verify")
    assert said["delivered"] == 0 and said["refused"] == 1, said


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("record", ["next", "order"])
def test_a_changed_message_of_the_same_node_is_refused(run, compile_mpi, mpi, record):
    """S2: whichever byte was changed, or when the next message came in its place, at every kind of check: the record of the message that
    was sent tells. What was sent comes through."""
    program = compile_mpi(HERE / "changed.c", mpi, flags=["-std=gnu11", "-ldl"])
    result = run([program, record], nodes=2, ranks=4, mpi=mpi, timeout=60)
    assert "exchanges 60 refused 60 delivered 120 wrong 0" in result.stdout, result.stdout + result.stderr[-3000:]


def test_many_forged_messages_of_the_same_node(inject):
    """S8: the job goes on, and what was sent is received."""
    assert inject(1, count=300, MPISEC_SAME_NODE="verify").items() >= {"refused": 300, "delivered": 0}.items()


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("way", ["recv", "any", "mprobe"])
def test_same_node_is_believed_when_plain(inject, mpi, way):
    """M1: with MPISEC_SAME_NODE=plain messages between ranks of a node are MPI's own, and whoever is taken for a rank of the node is
    believed; with seal nobody is."""
    assert inject(1, way=way, mpi=mpi, MPISEC_SAME_NODE="plain").items() >= DELIVERED
    assert inject(1, way=way, mpi=mpi, MPISEC_SAME_NODE="seal").items() >= REFUSED


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_records_refuse_nothing_genuine(run, compile_mpi, mpi):
    """M4 M9: sends that MPI refuses, thousands of unreceived messages, receives completed in reverse, other layouts."""
    result = run([compile_mpi(HERE / "records.c", mpi, flags=["-std=gnu11"])], nodes=2, ranks=4, mpi=mpi, timeout=60)
    assert result.returncode == 0 and "records: 0 wrong, 3 refused" in result.stdout, result.stdout + result.stderr[-3000:]
