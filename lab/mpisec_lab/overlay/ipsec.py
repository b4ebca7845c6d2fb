"""IPsec: ESP with AES-GCM-128, as Docker Swarm's encrypted overlay has it around VXLAN. By the kernel, else
by strongSwan in user space."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from mpisec_lab.namespace_init import INTERFACE, NETWORK, UNDERLAY_INTERFACE, UNDERLAY_NETWORK
from mpisec_lab.overlay import esp, strongswan, vxlan
from mpisec_lab.overlay.base import KERNEL, USER_SPACE, Overlay

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster

_CIPHER = "AES-GCM-128"
_BELOW_VXLAN = 79  # 10.79.0.0/16


class Ipsec(Overlay):
    """An ESP tunnel between each two nodes."""

    name = "ipsec"

    def connect(self, cluster: Cluster) -> None:
        if esp.available(cluster, tunnels=True):
            mtu = esp.tunnel_mtu(cluster.mtu)
            esp.tunnels(cluster, mtu)
            self.describe(f"Linux {platform.release()}", KERNEL, _CIPHER, mtu)
        else:
            mtu = strongswan.mtu(cluster.mtu)
            swan = strongswan.StrongSwan(self, cluster)
            swan.tunnels(NETWORK, mtu)
            swan.rename(INTERFACE)
            self.describe(swan.version, USER_SPACE, f"{_CIPHER} ({swan.cipher_from()})", mtu)


class VxlanIpsec(Overlay):
    """VXLAN whose packets go through ESP: the kernel's in transport mode, strongSwan's in tunnels."""

    name = "vxlan+ipsec"

    def connect(self, cluster: Cluster) -> None:
        if esp.available(cluster, tunnels=False):
            mtu = esp.transport_mtu(cluster.mtu) - vxlan.OVERHEAD
            esp.protect_udp(cluster, vxlan.PORT)
            vxlan.lay(cluster, UNDERLAY_INTERFACE, UNDERLAY_NETWORK, mtu)
            self.describe(f"Linux {platform.release()}", KERNEL, _CIPHER, mtu)
        else:
            tunnel_mtu = strongswan.mtu(cluster.mtu)
            mtu = tunnel_mtu - vxlan.OVERHEAD
            swan = strongswan.StrongSwan(self, cluster)
            swan.tunnels(_BELOW_VXLAN, tunnel_mtu)
            vxlan.lay(cluster, swan.device, _BELOW_VXLAN, mtu)
            self.describe(swan.version, USER_SPACE, f"{_CIPHER} ({swan.cipher_from()})", mtu)
