"""VXLAN with a static table: Ethernet frames in UDP, in clear. By itself it shows what an overlay costs
without encryption."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from mpisec_lab.namespace_init import INTERFACE, NETWORK, UNDERLAY_INTERFACE, UNDERLAY_NETWORK, address, mac
from mpisec_lab.overlay.base import KERNEL, Overlay, configure_or_fail

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster

PORT = 4789
OVERHEAD = 20 + 8 + 8 + 14  # bytes of each packet: IPv4, UDP, VXLAN, Ethernet
_NETWORK_IDENTIFIER = 77


class Vxlan(Overlay):
    """VXLAN over the wire."""

    name = "vxlan"

    def connect(self, cluster: Cluster) -> None:
        mtu = cluster.mtu - OVERHEAD
        lay(cluster, UNDERLAY_INTERFACE, UNDERLAY_NETWORK, mtu)
        self.describe(f"Linux {platform.release()}", KERNEL, "no encryption", mtu)


def lay(cluster: Cluster, below: str, network: int, mtu: int) -> None:
    """Lays VXLAN over the nodes' device `below`, whose addresses are in 10.`network`.0.0/16. Raises
    LabError."""
    count = len(cluster.names)
    for node in range(count):
        others = [other for other in range(count) if other != node]
        configure_or_fail(
            cluster,
            node,
            f"link add {INTERFACE} address {mac(node, NETWORK)} mtu {mtu} type vxlan "
            f"id {_NETWORK_IDENTIFIER} dev {below} local {address(node, network)} dstport {PORT} nolearning",
            f"addr add {address(node)}/16 dev {INTERFACE}",
            f"link set {INTERFACE} up",
            *[
                f"neigh add {address(other)} lladdr {mac(other, NETWORK)} dev {INTERFACE} nud permanent"
                for other in others
            ],
        )
        configure_or_fail(
            cluster,
            node,
            *[
                f"fdb add {mac(other, NETWORK)} dev {INTERFACE} dst {address(other, network)}"
                for other in others
            ],
            program="bridge",
        )
