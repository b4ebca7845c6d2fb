"""WireGuard between all nodes: the data plane of Calico's encryption. By the kernel, else by wireguard-go."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpisec_lab.linux import output_of
from mpisec_lab.namespace_init import INTERFACE, UNDERLAY_NETWORK, address
from mpisec_lab.overlay.base import (
    KERNEL,
    QUEUE,
    USER_SPACE,
    Overlay,
    configure,
    configure_or_fail,
    require,
    write_secret,
)

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster

PORT = 51820
_OVERHEAD = 20 + 8 + 16 + 16  # bytes of each packet: IPv4, UDP, header, tag
_PACKAGES = "wireguard-go wireguard-tools"

# wireguard-go's socket has a fixed name in /run, which nodes share: each daemon gets a /run of its own.
_START = f"""
mount -t tmpfs none /run && mkdir /run/wireguard || exit
{{
    until [ -S /run/wireguard/{INTERFACE}.sock ]; do kill -0 $$ || exit; sleep 0.02; done
    wg setconf {INTERFACE} "$0" && echo ready
}} &
exec wireguard-go -f {INTERFACE} >&2
"""


class WireGuard(Overlay):
    """WireGuard over the wire, with fresh keys."""

    name = "wireguard"

    def connect(self, cluster: Cluster) -> None:
        require(self.name, _PACKAGES, "wg")
        nodes = range(len(cluster.names))
        files = _write_configurations(cluster)
        if not any(configure(cluster, node, f"link add {INTERFACE} type wireguard") for node in nodes):
            plane, runs_in = f"Linux {platform.release()}", KERNEL
            for node in nodes:
                cluster.execute(node, ["wg", "setconf", INTERFACE, files[node]], sweep=False).check()
        else:
            plane, runs_in = _wireguard_go(), USER_SPACE
            self._start_daemons(cluster, files)
        mtu = cluster.mtu - _OVERHEAD
        for node in nodes:
            configure_or_fail(
                cluster,
                node,
                f"link set {INTERFACE} mtu {mtu} txqueuelen {QUEUE} up",
                f"addr add {cluster.addresses[node]}/16 dev {INTERFACE}",
            )
        self.describe(plane, runs_in, "ChaCha20-Poly1305", mtu)

    def _start_daemons(self, cluster: Cluster, files: Sequence[Path]) -> None:
        for node, name in enumerate(cluster.names):
            command = ["unshare", "--mount", "sh", "-c", _START, files[node]]
            started = self.daemon(cluster, node, command, stdout=subprocess.PIPE)
            with output_of(started) as said:
                if said.readline() != b"ready\n":
                    raise self.failed(f"wireguard-go did not start on {name}")


def _wireguard_go() -> str:
    """Name and version of the daemon. Raises LabError when it is not installed."""
    (program,) = require(WireGuard.name, _PACKAGES, "wireguard-go")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0].replace(" v", " ")


def _write_configurations(cluster: Cluster) -> list[Path]:
    """A file for `wg setconf` per node; returns their paths."""
    private = [_wg("genkey") for _ in cluster.names]
    public = [_wg("pubkey", key) for key in private]
    peers = [
        f"[Peer]\nPublicKey = {key}\nAllowedIPs = {address(node)}/32\n"
        f"Endpoint = {address(node, UNDERLAY_NETWORK)}:{PORT}\n"
        for node, key in enumerate(public)
    ]
    files = []
    for node, name in enumerate(cluster.names):
        others = peers[:node] + peers[node + 1 :]
        files.append(cluster.directory / f"{name}.wireguard")
        write_secret(
            files[node], f"[Interface]\nPrivateKey = {private[node]}\nListenPort = {PORT}\n" + "".join(others)
        )
    return files


def _wg(command: str, given: str = "") -> str:
    made = subprocess.run(["wg", command], input=given, capture_output=True, text=True, check=True)
    return made.stdout.strip()
