"""What was on the wire: packet capture on the bridge, TCP streams put together, and searching them.

The reader is for the lab's own captures: Ethernet, IPv4, classic pcap. Payloads are looked at as the
streams that TCP delivers, so that a marker is found across packet boundaries and a retransmission counts
once.
"""

from __future__ import annotations

import importlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, Self

from mpisec_lab.errors import LabError

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster

_ETHERNET_HEADER = 14
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

    def __init__(self, cluster: Cluster, path: str | Path) -> None:
        self.path = Path(path)
        self.dropped: int | None = None
        self._cluster = cluster
        self._job: subprocess.Popen[bytes] | None = None
        self._last = b""  # the datagram that ends the capture

    def __enter__(self) -> Self:
        program = shutil.which("tcpdump") or shutil.which("tcpdump", path="/usr/sbin:/sbin")
        if program is None:
            raise LabError("packet capture needs tcpdump: `apt-get install tcpdump`")
        if len(self._cluster.names) < 2:
            raise LabError("a capture needs two nodes: within one, nothing is on the wire")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        job = self._cluster.popen_on_bridge(
            [
                program,
                "-i",
                self._cluster.bridge,
                "-Z",
                "root",
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
        self._job = job
        line = b""
        for line in job.stderr or ():
            if b"listening on" in line:
                return self
        raise LabError(f"tcpdump did not start: {line.decode(errors='replace').strip()}")

    @property
    def pid(self) -> int:
        """The process that records, and its group."""
        assert self._job is not None
        return self._job.pid

    def __exit__(self, *_: object) -> None:
        assert self._job is not None and self._job.stderr is not None
        try:
            self._wait_for_all_before()
        finally:
            os.killpg(self.pid, signal.SIGINT)
            report = self._job.stderr.read().decode(errors="replace")
            self._job.wait()
        found = re.search(r"(\d+) packets? dropped by kernel", report)
        if found is None:
            raise LabError(f"tcpdump did not say what it dropped: {report}")
        self.dropped = int(found.group(1))

    def _wait_for_all_before(self, seconds: float = 30) -> None:
        """Sends datagrams and waits until the first is in the file: what was on the wire before it is then there too. The kernel hands
        frames over in blocks of 256 KiB, or after a second: so many datagrams that the block of the first is full. (Its mode of one frame
        at a time has room for some 2,000 frames only, however small.)"""
        nonce = secrets.token_hex(16)
        send = (
            "import socket, sys\n"
            "out = socket.socket(type=socket.SOCK_DGRAM)\n"
            "for _ in range(400): out.sendto(sys.argv[1].encode() * 40, (sys.argv[2], 9))"
        )
        self._cluster.execute(
            0, [sys.executable, "-P", "-c", send, nonce, self._cluster.underlay_addresses[1]], sweep=False
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

    def streams(self) -> list[Stream]:
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


def read_streams(path: str | Path) -> list[Stream]:
    """All streams of a pcap file, in order of first appearance."""
    connections: dict[tuple[str, str, int], _Segments] = {}
    datagrams: list[Stream] = []
    with open(path, "rb") as file:
        for frame in _frames(file):
            _take_frame(frame, connections, datagrams)
    return [_assemble(key, segments) for key, segments in connections.items()] + datagrams


def count(streams: Iterable[Stream], marker: bytes) -> int:
    """How often the bytes `marker` occur in the streams."""
    return sum(stream.data.count(marker) for stream in streams)


def find_runs(streams: Iterable[Stream], plaintext: bytes, length: int = 16) -> list[tuple[Stream, int, int]]:
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


def _run_length(data: bytes, offset: int, plaintext: bytes, position: int) -> int:
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


def _dpkt() -> ModuleType:
    """The library that takes packets apart: looked for only here, since running jobs must not need it. Raises LabError."""
    try:
        return importlib.import_module("dpkt")
    except ImportError as error:
        raise LabError("reading a capture needs dpkt: `apt-get install python3-dpkt`, or pip install dpkt in a virtual environment") from error


def _frames(file: BinaryIO) -> Iterator[bytes]:
    """Each frame of a pcap file. dpkt's own reader does not say when one was cut short."""
    dpkt = _dpkt()
    try:
        link = dpkt.pcap.Reader(file).datalink()
    except (ValueError, dpkt.UnpackError) as error:
        raise LabError("this is no pcap file") from error
    file.seek(0)
    record = dpkt.pcap.MAGIC_TO_PKT_HDR[dpkt.pcap.FileHdr(file.read(dpkt.pcap.FileHdr.__hdr_len__)).magic]
    if link != dpkt.pcap.DLT_EN10MB:
        raise LabError(f"the capture is of link type {link}, not Ethernet")
    while len(head := file.read(record.__hdr_len__)) == record.__hdr_len__:
        about = record(head)
        if about.caplen != about.len:
            raise LabError("the capture cut frames short: use tcpdump -s 0")
        frame = file.read(about.caplen)
        if len(frame) < about.caplen:
            raise LabError("the capture ends within a frame")
        yield frame


def _take_frame(frame: bytes, connections: dict[tuple[str, str, int], _Segments], datagrams: list[Stream]) -> None:
    """Files one frame's payload under its connection, or as a datagram."""
    dpkt = _dpkt()
    ethernet = dpkt.ethernet.Ethernet(frame)
    ip = ethernet.data
    if not isinstance(ip, dpkt.ip.IP):
        datagrams.append(Stream("", "", frame[_ETHERNET_HEADER:], protocol=f"ethernet {ethernet.type:#06x}"))
        return
    source, destination = socket.inet_ntoa(ip.src), socket.inet_ntoa(ip.dst)
    last = _ETHERNET_HEADER + ip.len if ip.len else len(frame)  # 0: longer than 64 KiB (segmentation offload)
    body = frame[_ETHERNET_HEADER + ip.hl * 4 : last]
    if ip.mf or ip.offset:
        datagrams.append(Stream(source, destination, body, protocol="fragment"))
    elif isinstance(ip.data, dpkt.udp.UDP):
        datagrams.append(Stream(f"{source}:{ip.data.sport}", f"{destination}:{ip.data.dport}", ip.data.data, protocol="udp"))
    elif isinstance(ip.data, dpkt.tcp.TCP):
        tcp = ip.data
        pair = (f"{source}:{tcp.sport}", f"{destination}:{tcp.dport}")
        connection = _connection(connections, pair, tcp.seq, bool(tcp.flags & dpkt.tcp.TH_SYN))
        if tcp.data:
            connection.append((tcp.seq, tcp.data))
    else:
        datagrams.append(Stream(source, destination, body, protocol=f"ip {ip.p}"))


def _connection(connections: dict[tuple[str, str, int], _Segments], pair: tuple[str, str], sequence: int, synchronizes: bool) -> _Segments:
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


class _Segments(list[tuple[int, bytes]]):
    """[(sequence number, payload)] in order of arrival; `first` is the number of the stream's first
    byte, if seen."""

    first: int | None = None


def _assemble(key: tuple[str, str, int], segments: _Segments) -> Stream:
    """One direction's bytes, later copies of a byte ignored."""
    base = segments.first if segments.first is not None else (segments[0][0] if segments else 0)
    placed = []
    high = 0  # highest position so far: sequence numbers near it are meant, so that streams may exceed 4 GiB
    for sequence, payload in segments:
        position = high + (
            (sequence - base - high + _SEQUENCE_SPACE // 2) % _SEQUENCE_SPACE - _SEQUENCE_SPACE // 2
        )
        high = max(high, position + len(payload))
        placed.append((position, payload))
    placed.sort(key=lambda piece: piece[0])
    pieces, reached, missing = [], 0, 0
    for position, payload in placed:
        if position > reached:
            missing += position - reached
            reached = position
        if position + len(payload) > reached:
            pieces.append(payload[reached - position :])
            reached = position + len(payload)
    return Stream(key[0], key[1], b"".join(pieces), missing)


def by_pair(streams: Iterable[Stream]) -> dict[tuple[str, str], int]:
    """{(source address, destination address): bytes carried}."""
    totals: defaultdict[tuple[str, str], int] = defaultdict(int)
    for stream in streams:
        totals[stream.source.partition(":")[0], stream.destination.partition(":")[0]] += len(stream.data)
    return dict(totals)
