"""Overlays: networks laid over the cluster's wire, encrypted as container platforms do it below plain MPI.

An overlay's device is `eth0` with the node's ordinary address, so that jobs are launched as ever; the wire
is `under0` (10.78.0.0/16), and what a capture on the bridge sees.

    base.py        what overlays have in common: conditions, daemons, the test that all nodes reach all
    vxlan.py       VXLAN, in clear
    wireguard.py   WireGuard: Calico's encryption
    ipsec.py       ESP with AES-GCM-128, alone or around VXLAN: Docker Swarm's encrypted overlay
    esp.py         … by the kernel
    strongswan.py  … by strongSwan's user-space ESP where the kernel has none
"""

from mpisec_lab.errors import LabError
from mpisec_lab.overlay.base import Overlay
from mpisec_lab.overlay.ipsec import Ipsec, VxlanIpsec
from mpisec_lab.overlay.vxlan import Vxlan
from mpisec_lab.overlay.wireguard import WireGuard

OVERLAYS: dict[str, type[Overlay]] = {overlay.name: overlay for overlay in (Vxlan, WireGuard, Ipsec, VxlanIpsec)}


def make(name: str) -> Overlay | None:
    """The Overlay of that name, not started; None for "none". Raises LabError that lists what there is."""
    if name == "none":
        return None
    if name not in OVERLAYS:
        raise LabError(f"the lab knows no overlay {name!r}; it knows none, {', '.join(OVERLAYS)}")
    return OVERLAYS[name]()
