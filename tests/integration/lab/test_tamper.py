"""Attacks on the wire of plain jobs: what the attacker does reaches the application, so that sealing has
to stop it."""

import random
import struct
from pathlib import Path

import pytest

from mpisec_lab import tamper
from mpisec_lab.cluster import Cluster
from mpisec_lab.errors import LabError
from mpisec_lab.tamper import Blackhole, DropOnce, Duplicate, FlipByte, Packet, Wire

REPEATS = 60_000
MARKER = "attack-me-0123456789"


def frame(payload, sequence=1000, checksum=0x1234):
    """A TCP frame with a wrong checksum (0); `checksum`: of its IP header."""
    tcp = struct.pack("!HHIIBBHHH", 1, 2, sequence, 7, 5 << 4, 0x18, 100, 0, 0) + payload
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, checksum, b"\x0a\x4d\0\1", b"\x0a\x4d\0\2"
    )
    return bytes(12) + b"\x08\0" + ip + tcp


@pytest.mark.parametrize("checksum", [0, 0x1234])
@pytest.mark.parametrize("size", [1, 2, 7, 1448])
def test_a_changed_packet_has_a_right_checksum(size, checksum):
    packet = Packet(frame(bytes(size), checksum=checksum), 0, 1)
    packet.payload = random.Random(size).randbytes(size)
    out = packet.frame()
    segment = out[26:34] + struct.pack("!HH", 6, 20 + size) + out[34:] + bytes(size % 2)
    total = sum(struct.unpack(f"!{len(segment) // 2}H", segment))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF and packet.payload == out[54:]
    with pytest.raises(ValueError, match="keep its length"):
        packet.payload = bytes(size + 1)


def test_a_retransmission_is_changed_alike():
    rule = FlipByte(0, 1, nth=1, min_payload=4, offset=2)
    sent = [(1000, b"aaaa"), (1004, b"bbbb"), (1004, b"bbbb"), (1002, b"aabbbbcc"), (1008, b"cccc")]
    got = [rule(Packet(frame(payload, sequence), 0, 1))[0].payload for sequence, payload in sent]
    assert got == [b"aaaa", b"bbcb", b"bbcb", b"aabbcbcc", b"cccc"]
    assert rule.hits == 3


def test_the_target_is_counted_after_the_marker_in_one_direction():
    rule = DropOnce(0, 1, nth=1, min_payload=2, marker=b"go")
    packets = [
        (0, 1, 10, b"xx"),
        (1, 0, 10, b"go"),
        (0, 1, 12, b"go"),
        (0, 1, 14, b"1"),
        (0, 1, 15, b"22"),
        (1, 0, 12, b"yy"),
        (0, 1, 17, b"33"),
        (0, 1, 19, b"44"),
    ]
    kept = []
    for source, destination, sequence, payload in packets:
        kept += [p.payload for p in rule(Packet(frame(payload, sequence), source, destination))]
    assert kept == [b"xx", b"go", b"go", b"1", b"22", b"yy", b"44"]


def test_a_kernel_bridge_has_no_ports(cluster):
    with pytest.raises(LabError, match="userspace_bridge"):
        Wire(cluster(2))


@pytest.fixture(scope="module")
def attacked(lab, compile_mpi):
    """attacked(rule, mpi, timeout): the Result of the marker job while `rule` plays the network."""

    def run(rule, mpi="mpich-5", timeout=60):
        app = compile_mpi(Path(__file__).parent / "marker.c", mpi)
        with Cluster(2, userspace_bridge=True) as one, Wire(one, rule) as wire:
            result = one.run([app, MARKER, str(REPEATS)], ranks=2, mpi=mpi, plain=True, timeout=timeout)
            assert wire.forwarded > 100
        return result

    return run


@pytest.mark.parametrize("rule", [None, DropOnce(0, 1, nth=100), Duplicate(0, 1, nth=100)])
def test_tcp_repairs_loss_and_doubling(attacked, rule):
    assert f"right {REPEATS} of {REPEATS}" in attacked(rule).check().stdout
    assert rule is None or rule.hits == 1


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_flipped_bit_reaches_a_plain_program(attacked, mpi):
    rule = FlipByte(0, 1, nth=100, min_payload=1000)
    assert f"right {REPEATS - 1} of {REPEATS}" in attacked(rule, mpi).check().stdout
    assert rule.hits >= 1


def test_a_blackhole_stalls_a_plain_program(attacked):
    rule = Blackhole(0, 1, nth=100)
    assert attacked(rule, timeout=5).timed_out
    assert rule.hits >= 1


def test_the_addresses_of_the_wire_are_those_of_the_nodes(cluster):
    assert [tamper.address(i) for i in range(2)] == cluster(2).addresses
