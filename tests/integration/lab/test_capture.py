"""Packet captures: nothing on the wire is missed, and what is found is really there."""

import os
import random
import signal
import struct
import sys
import time

import pytest

from mpisec_lab import capture
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import MPIS

MARKER = b"heat-diffusion-marker-0123456789"


def tcp_frame(sequence, payload, *, syn=False, ports=(1000, 2000)):
    tcp = (
        struct.pack("!HHIIBBHHH", *ports, sequence % 2**32, 0, 5 << 4, 2 if syn else 0x10, 0, 0, 0) + payload
    )
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, b"\x0a\x4d\0\1", b"\x0a\x4d\0\2"
    )
    return bytes(12) + b"\x08\0" + ip + tcp + bytes(6)  # Ethernet's padding


def write_pcap(path, frames, snap=None):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for frame in frames:
            kept = frame[:snap]
            file.write(struct.pack("<IIII", 0, 0, len(kept), len(frame)) + kept)
    return path


def one_stream(tmp_path, frames):
    (stream,) = capture.read_streams(write_pcap(tmp_path / "x.pcap", frames))
    return stream


def test_segments_are_put_in_order_and_retransmissions_count_once(tmp_path):
    text = bytes(range(200))
    first = 2**32 - 50  # the sequence number wraps within the stream
    pieces = [(0, 60), (100, 160), (40, 110), (0, 60), (155, 200)]
    random.Random(1).shuffle(pieces)
    frames = [tcp_frame(first - 1, b"", syn=True)] + [tcp_frame(first + a, text[a:b]) for a, b in pieces]
    stream = one_stream(tmp_path, frames)
    assert (stream.data, stream.missing) == (text, 0)
    assert (stream.source, stream.destination) == ("10.77.0.1:1000", "10.77.0.2:2000")


def test_other_protocols_are_datagrams(tmp_path):
    def packet(protocol, body, flags=0):
        header = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, flags, 64, protocol, 0, bytes(4), b"\x0a\x4e\0\1"
        )
        return bytes(12) + b"\x08\0" + header + body

    udp = struct.pack("!HHHH", 7, 4789, 10, 0) + b"in"
    frames = [packet(17, udp), packet(17, udp, 0x2000), packet(17, b"rest", 1), packet(50, b"esp")]
    frames.append(bytes(12) + b"\x08\x06arp")
    found = capture.read_streams(write_pcap(tmp_path / "x.pcap", frames))
    assert [(stream.protocol, stream.source, stream.destination, stream.data) for stream in found] == [
        ("udp", "0.0.0.0:7", "10.78.0.1:4789", b"in"),
        ("fragment", "0.0.0.0", "10.78.0.1", udp),
        ("fragment", "0.0.0.0", "10.78.0.1", b"rest"),
        ("ip 50", "0.0.0.0", "10.78.0.1", b"esp"),
        ("ethernet 0x0806", "", "", b"arp"),
    ]


def test_missing_bytes_are_counted(tmp_path):
    assert (
        one_stream(
            tmp_path, [tcp_frame(99, b"", syn=True), tcp_frame(100, b"ab"), tcp_frame(107, b"c")]
        ).missing
        == 5
    )


def test_a_reused_port_is_another_stream(tmp_path):
    frames = [
        tcp_frame(9, b"", syn=True),
        tcp_frame(10, b"one"),
        tcp_frame(5000, b"", syn=True),
        tcp_frame(5001, b"two"),
    ]
    streams = capture.read_streams(write_pcap(tmp_path / "x.pcap", frames))
    assert [stream.data for stream in streams] == [b"one", b"two"]


def test_a_marker_is_found_across_packets(tmp_path):
    stream = one_stream(tmp_path, [tcp_frame(10, b"..." + MARKER[:7]), tcp_frame(20, MARKER[7:] + MARKER)])
    assert capture.count([stream], MARKER) == 2


def test_cut_captures_are_refused(tmp_path):
    frame = tcp_frame(10, bytes(100))
    with pytest.raises(LabError, match="cut frames short"):
        capture.read_streams(write_pcap(tmp_path / "x.pcap", [frame], snap=80))
    whole = write_pcap(tmp_path / "y.pcap", [frame])
    whole.write_bytes(whole.read_bytes()[:-3])
    with pytest.raises(LabError, match="ends within a frame"):
        capture.read_streams(whole)


@pytest.mark.parametrize("shift", range(9))
@pytest.mark.parametrize("length", [15, 16, 40])
def test_runs_of_the_plaintext_are_found_at_any_alignment(shift, length):
    draw = random.Random(shift)
    plaintext, noise = draw.randbytes(100_000), draw.randbytes(5000)
    stream = capture.Stream("a", "b", noise + bytes(shift) + plaintext[4321 : 4321 + length] + noise)
    found = capture.find_runs([stream], plaintext)
    assert bool(found) == (length >= 16)
    for _, offset, position in found:
        assert stream.data[offset : offset + 8] == plaintext[position : position + 8]
    assert capture.find_runs([stream], draw.randbytes(100_000)) == []


def test_a_plaintext_that_repeats_itself_is_refused():
    with pytest.raises(ValueError, match="occur twice"):
        capture.find_runs([], bytes(100))


@pytest.mark.parametrize("mpi", MPIS)
def test_a_plain_job_is_seen_on_the_wire(cluster, compile_mpi, tmp_path, request, mpi):
    app = compile_mpi(request.path.parent / "marker.c", mpi)
    repeats = 20_000  # 640 KB
    one = cluster(2)
    with one.capture(tmp_path / "plain.pcap") as wire:
        result = one.run([app, MARKER.decode(), str(repeats)], ranks=2, mpi=mpi, plain=True, timeout=60)
    if not (mpi == "mpich-4" and result.timed_out):  # its Finalize hangs at times
        assert f"right {repeats} of {repeats}" in result.check().stdout
    streams = wire.streams()
    assert wire.dropped == 0
    assert repeats * 0.95 <= capture.count(streams, MARKER) <= repeats + 10, (
        "fragment headers cut few markers"
    )
    assert capture.by_pair(streams)[one.addresses[0], one.addresses[1]] > repeats * len(MARKER)
    assert capture.find_runs(streams, MARKER)


def test_a_burst_of_small_frames_is_not_lost(cluster, tmp_path):
    """A capture that gets no processor for a while: what comes meanwhile has room."""
    one = cluster(2)
    send = (
        "import socket, sys\n"
        "out = socket.socket(type=socket.SOCK_DGRAM)\n"
        "for _ in range(20_000): out.sendto(sys.argv[1].encode(), (sys.argv[2], 9))"
    )
    with one.capture(tmp_path / "burst.pcap") as wire:
        os.killpg(wire.pid, signal.SIGSTOP)
        one.execute(0, [sys.executable, "-c", send, MARKER.decode(), one.addresses[1]], sweep=False).check()
        for _ in range(3):  # nsenter, which waits for tcpdump, stops itself once more when it sees it stopped
            os.killpg(wire.pid, signal.SIGCONT)
            time.sleep(0.1)
    sent = [stream for stream in wire.streams() if stream.protocol == "udp"]
    assert wire.dropped == 0 and capture.count(sent, MARKER) == 20_000


def test_ranks_of_one_node_are_not_on_the_wire(compile_mpi, tmp_path, request, cluster):
    app = compile_mpi(request.path.parent / "marker.c", "mpich-5")
    one = cluster(2)
    with one.capture(tmp_path / "node.pcap") as wire:
        # Both ranks on node 1, launched from node 0.
        launch = MPIS["mpich-5"].launch([(one.names[1], 2)], str(one.agent), "eth0", one.directory)
        one.execute(0, [*launch, app, MARKER.decode(), "20000"]).check()
    assert capture.count(wire.streams(), MARKER) <= 10, "only the launcher's command line may hold it"
