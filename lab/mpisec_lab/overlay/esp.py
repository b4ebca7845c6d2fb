"""ESP by the kernel: static security associations with fresh AES-GCM-128 keys between all nodes."""

from __future__ import annotations

import secrets
from itertools import permutations
from typing import TYPE_CHECKING

from mpisec_lab.namespace_init import INTERFACE, NETWORK, UNDERLAY_INTERFACE, UNDERLAY_NETWORK, address
from mpisec_lab.overlay.base import configure, configure_or_fail

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster

_IPV4 = 20
_OVERHEAD = 8 + 8 + 16  # bytes of each packet: header, initialization vector, tag; then there is padding
_KEY_BYTES = 16 + 4  # AES-128, and RFC 4106's salt
_TAG_BITS = 128
_OF_TUNNELS = "if_id 1"  # ties associations and policies to the tunnels' device


def padded(space: int) -> int:
    """Bytes of the longest packet that ESP can carry in `space` bytes: padding makes it and a trailer of two
    bytes a multiple of four."""
    return space // 4 * 4 - 2


def tunnel_mtu(wire: int) -> int:
    """Bytes of the longest packet in a tunnel over a wire that takes `wire` bytes."""
    return padded(wire - _IPV4 - _OVERHEAD)


def transport_mtu(wire: int) -> int:
    """Bytes of the longest packet in transport mode, whose IPv4 header stays outside."""
    return tunnel_mtu(wire) + _IPV4


def available(cluster: Cluster, tunnels: bool) -> bool:
    """Whether every node's kernel takes an ESP association with AES-GCM, and has a device for `tunnels`."""
    trial = [_association(0, 0, "transport", bytes(_KEY_BYTES)), "xfrm state flush"]
    if tunnels:
        trial += [_device("trial0"), "link del trial0"]
    return not any(configure(cluster, node, *trial) for node in range(len(cluster.names)))


def tunnels(cluster: Cluster, mtu: int) -> None:
    """Makes `eth0` of every node a device whose packets go through tunnels over the wire. Raises LabError."""
    device = [_device(INTERFACE), f"link set {INTERFACE} mtu {mtu} up"]
    for node, commands in enumerate(_protection(cluster, "tunnel", NETWORK, "", _OF_TUNNELS)):
        configure_or_fail(
            cluster, node, *device, f"addr add {cluster.addresses[node]}/16 dev {INTERFACE}", *commands
        )


def protect_udp(cluster: Cluster, port: int) -> None:
    """Protects every UDP packet to `port` that crosses the wire, in transport mode. Raises LabError."""
    what = f"proto udp dport {port}"
    for node, commands in enumerate(_protection(cluster, "transport", UNDERLAY_NETWORK, what)):
        configure_or_fail(cluster, node, *commands)


def _device(name: str) -> str:
    return f"link add {name} type xfrm dev {UNDERLAY_INTERFACE} {_OF_TUNNELS}"


def _protection(cluster: Cluster, mode: str, network: int, what: str, extra: str = "") -> list[list[str]]:
    """Commands for each node: associations with each other node, and policies that `what` between the
    addresses in `network` goes through them."""
    commands: list[list[str]] = [[] for _ in cluster.names]
    for source, target in permutations(range(len(cluster.names)), 2):
        association = f"{_association(source, target, mode, secrets.token_bytes(_KEY_BYTES))} {extra}"
        for node, direction in (source, "out"), (target, "in"):
            commands[node] += [
                association,
                f"xfrm policy add src {address(source, network)}/32 dst {address(target, network)}/32 {what} "
                f"dir {direction} {extra} tmpl {_ends(source, target)} proto esp mode {mode}",
            ]
    return commands


def _association(source: int, target: int, mode: str, key: bytes) -> str:
    return (
        f"xfrm state add {_ends(source, target)} proto esp spi {0x1000 + 256 * source + target} mode {mode} "
        f"flag esn replay-window 1024 aead rfc4106(gcm(aes)) 0x{key.hex()} {_TAG_BITS}"
    )


def _ends(source: int, target: int) -> str:
    return f"src {address(source, UNDERLAY_NETWORK)} dst {address(target, UNDERLAY_NETWORK)}"
