"""What was on the wire: packet capture on the bridge, TCP streams put together, and searching them.

The reader is for the lab's own captures: Ethernet, IPv4, classic pcap. Payloads are looked at as the
streams that TCP delivers, so that a marker is found across packet boundaries and a retransmission counts
once.
"""

import mmap
import os
import re
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from mpisec_lab.errors import LabError

_ETHERNET = 1
_IPV4 = 0x0800
_TCP = 6
_UDP = 17
_FRAGMENTED = 0x3FFF  # "more fragments", or an offset
_SYN = 0x02
_SEQUENCE_SPACE = 1 << 32


@dataclass(frozen=True)
class Stream:
    """One direction of a TCP connection, or one datagram of another protocol."""

    source: str  # "address:port", without a port when the protocol has none
    destination: str
    data: bytes  # in the order of the sequence numbers
    missing: int = 0  # bytes of the stream that the capture lacks
    protocol: str = "tcp"  # or "udp", "fragment", "ip 50" (its number), "ethernet 0x86dd" (its type)


class Capture:
    """Records every frame on a cluster's bridge with tcpdump while the with-block runs.

    dropped: frames that the kernel could not hand over, known after the block.
    """

    def __init__(self, cluster, path):
        self.path = Path(path)
        self.dropped = None
        self._cluster = cluster
        self._job = None
        self._last = b""  # the datagram that ends the capture

    def __enter__(self):
        program = shutil.which("tcpdump") or shutil.which("tcpdump", path="/usr/sbin:/sbin")
        if program is None:
            raise LabError("packet capture needs tcpdump: `apt-get install tcpdump`")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._job = self._cluster.popen_on_bridge(
            [
                program,
                "-i",
                self._cluster.bridge,
                "-Z",
                "root",
                "--immediate-mode",
                "-U",
                "-n",
                "-s",
                "0",
                "-B",
                "131072",
                "-w",
                str(self.path.absolute()),
            ],
            stderr=subprocess.PIPE,
        )
        line = b""
        for line in self._job.stderr:
            if b"listening on" in line:
                return self
        raise LabError(f"tcpdump did not start: {line.decode(errors='replace').strip()}")

    def __exit__(self, *_):
        try:
            self._wait_for_all_before()
        finally:
            os.killpg(self._job.pid, signal.SIGINT)
            report = self._job.stderr.read().decode(errors="replace")
            self._job.wait()
        found = re.search(r"(\d+) packets? dropped by kernel", report)
        if found is None:
            raise LabError(f"tcpdump did not say what it dropped: {report}")
        self.dropped = int(found.group(1))

    def _wait_for_all_before(self, seconds=30):
        """Sends a datagram and waits until it is in the file: what was on the wire before it is then there
        too."""
        nonce = secrets.token_hex(16)
        send = (
            "import socket, sys\n"
            "socket.socket(type=socket.SOCK_DGRAM).sendto(sys.argv[1].encode(), (sys.argv[2], 9))"
        )
        self._cluster.execute(
            0, [sys.executable, "-c", send, nonce, self._cluster.underlay_addresses[1]], sweep=False
        ).check()
        self._last = nonce.encode()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with open(self.path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - (1 << 20)))
                if self._last in file.read():
                    return
            time.sleep(0.01)
        raise LabError("tcpdump does not keep up: the capture is not complete")

    def streams(self):
        """The capture's streams. Raises LabError when frames are missing, because absence then proves
        nothing."""
        if self.dropped:
            raise LabError(f"the capture lacks {self.dropped} frames: make the job smaller")
        found = [
            stream
            for stream in read_streams(self.path)
            if stream.protocol == "tcp" or self._last not in stream.data  # its port's "unreachable", too
        ]
        gaps = sum(stream.missing for stream in found)
        if gaps:
            raise LabError(f"the capture lacks {gaps} bytes of TCP streams")
        return found


def read_streams(path):
    """All streams of a pcap file (list of Stream, in order of first appearance)."""
    connections = {}
    datagrams = []
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        for start, end in _records(data):
            _take_frame(data, start, end, connections, datagrams)
        return [_assemble(key, segments, data) for key, segments in connections.items()] + datagrams


def count(streams, marker):
    """How often the bytes `marker` occur in the streams."""
    return sum(stream.data.count(marker) for stream in streams)


def find_runs(streams, plaintext, length=16):
    """Where `length` (>= 15) or more consecutive bytes of `plaintext` occur: [(stream, offset in it,
    offset in plaintext)].

    One entry per 8-byte word of a stream inside such a run. The plaintext has to be random: any 8 of its
    bytes occur once in it (ValueError otherwise), so that zeros in a protocol's header are no false alarm.
    """
    import numpy as np  # only here: running jobs must not need it

    # Any run of 15 bytes holds an aligned 8-byte word of the stream: look up these, then measure the run
    # around them.
    plain = np.frombuffer(plaintext, np.uint8)
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(plain, 8)).view("<u8").ravel()
    order = np.argsort(windows, kind="stable")
    ordered = windows[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise ValueError("find_runs needs a random plaintext: some 8 bytes of this one occur twice")
    found = []
    for stream in streams:
        words = np.frombuffer(stream.data, "<u8", count=len(stream.data) // 8)
        at = np.searchsorted(ordered, words)
        at[at == len(ordered)] = 0
        for word in np.flatnonzero(ordered[at] == words):
            offset, position = int(word) * 8, int(order[at[word]])
            if _run_length(stream.data, offset, plaintext, position) >= length:
                found.append((stream, offset, position))
    return found


def _run_length(data, offset, plaintext, position):
    """Length of the longest common run around data[offset] and plaintext[position], looked for up to 64
    bytes each way."""
    before = 0
    while (
        before < min(offset, position, 64) and data[offset - before - 1] == plaintext[position - before - 1]
    ):
        before += 1
    after = 0
    limit = min(len(data) - offset, len(plaintext) - position, 64)
    while after < limit and data[offset + after] == plaintext[position + after]:
        after += 1
    return before + after


def _records(data):
    """(start, end) of each frame in a pcap file's bytes."""
    if len(data) < 24:
        raise LabError("this is no packet capture: it is shorter than its header")
    magic = data[:4]
    if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        order = "<"
    elif magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        order = ">"
    else:
        raise LabError("this is no pcap file")
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    if link != _ETHERNET:
        raise LabError(f"the capture is of link type {link}, not Ethernet")
    header = struct.Struct(order + "IIII")
    position = 24
    while position + 16 <= len(data):
        _, _, captured, original = header.unpack_from(data, position)
        if captured != original:
            raise LabError("the capture cut frames short: use tcpdump -s 0")
        position += 16
        if position + captured > len(data):
            raise LabError("the capture ends within a frame")
        yield position, position + captured
        position += captured


def _take_frame(data, start, end, connections, datagrams):
    """Files one frame's payload under its connection, or as a datagram."""
    network = start + 14
    (kind,) = struct.unpack_from("!H", data, start + 12)
    if kind != _IPV4:
        datagrams.append(Stream("", "", data[network:end], protocol=f"ethernet {kind:#06x}"))
        return
    protocol = data[network + 9]
    total = struct.unpack_from("!H", data, network + 2)[0]
    transport = network + (data[network] & 15) * 4
    last = network + total if total else end  # 0: longer than 64 KiB (segmentation offload)
    source = ".".join(map(str, data[network + 12 : network + 16]))
    destination = ".".join(map(str, data[network + 16 : network + 20]))
    if struct.unpack_from("!H", data, network + 6)[0] & _FRAGMENTED:
        datagrams.append(Stream(source, destination, data[transport:last], protocol="fragment"))
        return
    if protocol == _UDP:
        sport, dport = struct.unpack_from("!HH", data, transport)
        pair = (f"{source}:{sport}", f"{destination}:{dport}")
        datagrams.append(Stream(*pair, data[transport + 8 : last], protocol="udp"))
        return
    if protocol != _TCP:
        datagrams.append(Stream(source, destination, data[transport:last], protocol=f"ip {protocol}"))
        return
    sport, dport, sequence = struct.unpack_from("!HHI", data, transport)
    payload = transport + (data[transport + 12] >> 4) * 4
    pair = (f"{source}:{sport}", f"{destination}:{dport}")
    connection = _connection(connections, pair, sequence, bool(data[transport + 13] & _SYN))
    if payload < last:
        connection.append((sequence, payload, last))


def _connection(connections, pair, sequence, synchronizes):
    """The segment list of the newest connection of `pair`; a SYN with another number starts a new one
    (port reuse)."""
    generation = 0
    while (*pair, generation + 1) in connections:
        generation += 1
    segments = connections.get((*pair, generation))
    if segments is None:
        segments = connections[(*pair, generation)] = _Segments()
    elif synchronizes and segments.first != (sequence + 1) % _SEQUENCE_SPACE:
        segments = connections[(*pair, generation + 1)] = _Segments()
    if synchronizes:
        segments.first = (sequence + 1) % _SEQUENCE_SPACE
    return segments


class _Segments(list):
    """[(sequence number, start, end)] in order of arrival; `first` is the number of the stream's first
    byte, if seen."""

    first = None


def _assemble(key, segments, data):
    """One direction's bytes, later copies of a byte ignored."""
    base = segments.first if segments.first is not None else (segments[0][0] if segments else 0)
    placed = []
    high = 0  # highest position so far: sequence numbers near it are meant, so that streams may exceed 4 GiB
    for sequence, start, end in segments:
        position = high + (
            (sequence - base - high + _SEQUENCE_SPACE // 2) % _SEQUENCE_SPACE - _SEQUENCE_SPACE // 2
        )
        high = max(high, position + end - start)
        placed.append((position, start, end))
    placed.sort(key=lambda piece: piece[0])
    pieces, reached, missing = [], 0, 0
    for position, start, end in placed:
        if position > reached:
            missing += position - reached
            reached = position
        if position + (end - start) > reached:
            pieces.append(data[start + reached - position : end])
            reached = position + (end - start)
    return Stream(key[0], key[1], b"".join(pieces), missing)


def by_pair(streams):
    """{(source address, destination address): bytes carried}."""
    totals = defaultdict(int)
    for stream in streams:
        totals[stream.source.partition(":")[0], stream.destination.partition(":")[0]] += len(stream.data)
    return dict(totals)
