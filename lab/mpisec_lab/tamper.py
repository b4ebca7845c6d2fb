"""An attacker on the lab's wire: forwards the frames between nodes and changes some of them.

    with Cluster(2, userspace_bridge=True) as cluster, Wire(cluster, FlipByte(0, 1, nth=20)) as wire:
        result = cluster.run(...)
    assert wire.rule.hits

A rule is called with each TCP packet that carries payload and returns the packets to deliver instead. TCP
repairs what is merely lost or doubled once, so an attack has to hit what TCP accepts: FlipByte keeps the
checksum right and changes each retransmission alike; Blackhole never lets anything through again.
"""

import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import dpkt

from mpisec_lab.cluster import Cluster
from mpisec_lab.namespace_init import address

_LONGEST_FRAME = 65536 + 64


class Packet:
    """A TCP packet in an Ethernet frame. source and destination are node numbers; payload is bytes and can
    be set."""

    def __init__(self, frame: bytes, source: int, destination: int) -> None:
        self.source = source
        self.destination = destination
        self._frame = frame
        self._parsed = dpkt.ethernet.Ethernet(frame)

    @property
    def flow(self) -> tuple[int, int]:
        """(source port, destination port)"""
        tcp = self._parsed.data.data
        return tcp.sport, tcp.dport

    @property
    def sequence(self) -> int:
        """Sequence number of the first payload byte."""
        return int(self._parsed.data.data.seq)

    @property
    def payload(self) -> bytes:
        """What the packet carries."""
        return bytes(self._parsed.data.data.data)

    @payload.setter
    def payload(self, data: bytes) -> None:
        tcp = self._parsed.data.data
        if len(data) != len(tcp.data):
            raise ValueError("a changed payload has to keep its length, or TCP's numbers no longer fit")
        tcp.data = data
        self._parsed.data.sum = tcp.sum = 0  # dpkt then computes both, IP's and TCP's
        self._frame = bytes(self._parsed)

    def frame(self) -> bytes:
        """The whole frame as it goes on the wire."""
        return self._frame


@dataclass
class Target:
    """Which packet: from node `source` to node `destination`, the `nth` (from 0) new one with at least
    `min_payload` bytes, counted after a payload with the bytes `marker` has passed (None: from the start)."""

    source: int
    destination: int
    nth: int = 0
    min_payload: int = 512
    marker: bytes | None = None

    def __post_init__(self) -> None:
        self.hits = 0  # how many packets were changed, dropped or doubled
        self._seen = 0
        self._armed = self.marker is None
        self._highest: dict[tuple[int, int], int] = {}  # flow -> sequence number after the newest byte, to tell retransmissions

    def reached(self, packet: Packet) -> bool:
        """Whether this packet is the target. To be called once for each packet."""
        if (packet.source, packet.destination) != (self.source, self.destination):
            return False
        payload = packet.payload
        end = (packet.sequence + len(payload)) & 0xFFFFFFFF
        newest = self._highest.get(packet.flow)
        if newest is not None and 0 < ((newest - end) & 0xFFFFFFFF) + 1 < 1 << 31:
            return False  # nothing new in it
        self._highest[packet.flow] = end
        if not self._armed:
            self._armed = self.marker is None or self.marker in payload
            return False
        if len(payload) < self.min_payload:
            return False
        self._seen += 1
        return self._seen == self.nth + 1


@dataclass
class FlipByte(Target):
    """Flips one bit of the target's payload, `offset` bytes from its start (negative: from its end; None:
    the middle)."""

    offset: int | None = None
    mask: int = 0x01

    def __post_init__(self) -> None:
        super().__post_init__()
        self._place: tuple[int, int, tuple[int, int], int] | None = None  # (source, destination, flow, sequence number of the changed byte)

    def __call__(self, packet: Packet) -> list[Packet]:
        """Returns the packets to deliver."""
        if self._place is None and self.reached(packet):
            size = len(packet.payload)
            at = size // 2 if self.offset is None else self.offset % size
            self._place = (
                packet.source,
                packet.destination,
                packet.flow,
                (packet.sequence + at) & 0xFFFFFFFF,
            )
        if self._place and self._place[:3] == (packet.source, packet.destination, packet.flow):
            payload = bytearray(packet.payload)
            at = (self._place[3] - packet.sequence) & 0xFFFFFFFF
            if at < len(payload):
                payload[at] ^= self.mask
                packet.payload = bytes(payload)
                self.hits += 1
        return [packet]


@dataclass
class Blackhole(Target):
    """Drops the target and everything after it between the two nodes, both ways: a link that has died."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._closed = False

    def __call__(self, packet: Packet) -> list[Packet]:
        """Returns the packets to deliver."""
        self._closed = self._closed or self.reached(packet)
        if self._closed and {packet.source, packet.destination} == {self.source, self.destination}:
            self.hits += 1
            return []
        return [packet]


@dataclass
class DropOnce(Target):
    """Drops the target; TCP sends it again."""

    def __call__(self, packet: Packet) -> list[Packet]:
        """Returns the packets to deliver."""
        if self.reached(packet):
            self.hits += 1
            return []
        return [packet]


@dataclass
class Duplicate(Target):
    """Delivers the target twice; TCP ignores the second."""

    def __call__(self, packet: Packet) -> list[Packet]:
        """Returns the packets to deliver."""
        if self.reached(packet):
            self.hits += 1
            return [packet, packet]
        return [packet]


Rule = Callable[[Packet], list[Packet]]


class Wire:
    """Forwards frames between the nodes of a userspace_bridge cluster in a thread, through `rule`; a
    context manager.

    rule: a callable that takes a Packet and returns a list of Packets; None forwards everything as it is.
    forwarded: number of frames. After the with-block the nodes are cut off.
    """

    def __init__(self, cluster: Cluster, rule: Rule | None = None) -> None:
        self.rule = rule
        self.forwarded = 0
        self._error: Exception | None = None
        self._ports = cluster.bridge_ports()
        self._nodes = {socket.inet_aton(address(i)): i for i in range(len(self._ports))}
        self._stop_read, self._stop_write = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="wire", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_write.send(b"s")
        self._thread.join()
        for port in (*self._ports, self._stop_read, self._stop_write):
            port.close()
        if self._error is not None:
            raise self._error

    def _serve(self) -> None:
        poll = select.poll()
        by_descriptor = {port.fileno(): i for i, port in enumerate(self._ports)}
        for descriptor in (*by_descriptor, self._stop_read.fileno()):
            poll.register(descriptor, select.POLLIN)
        try:
            while True:
                for descriptor, _ in poll.poll():
                    if descriptor not in by_descriptor:
                        return
                    self._forward_waiting(by_descriptor[descriptor])
        except Exception as error:  # for whoever leaves the with-block; a thread's own would be lost
            self._error = error

    def _forward_waiting(self, source: int, most: int = 64) -> None:
        """Forwards up to `most` frames that node `source` has sent."""
        for _ in range(most):
            try:
                frame = self._ports[source].recv(_LONGEST_FRAME, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            for target, out in self._deliveries(frame, source):
                self.forwarded += 1
                try:
                    self._ports[target].send(out)
                except OSError:
                    pass  # a full queue: TCP sends it again

    def _deliveries(self, frame: bytes, source: int) -> list[tuple[int, bytes]]:
        """[(node, frame)] that this frame turns into."""
        ip = dpkt.ethernet.Ethernet(frame).data
        if not isinstance(ip, dpkt.ip.IP):
            return [(node, frame) for node in range(len(self._ports)) if node != source]
        target = self._nodes.get(ip.dst)
        if target is None:
            return []
        if not isinstance(ip.data, dpkt.tcp.TCP) or not ip.data.data or self.rule is None:
            return [(target, frame)]
        packet = Packet(frame, source, target)
        return [(each.destination, each.frame()) for each in self.rule(packet)]
