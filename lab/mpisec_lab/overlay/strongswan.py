"""ESP in user space: strongSwan's charon with libipsec on every node, and a tunnel between each two.

IKE sets the tunnels up with a key that is fresh for each cluster; their packets are ESP in UDP. libipsec has
neither transport mode nor protection for the addresses that IKE itself uses.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from mpisec_lab.namespace_init import UNDERLAY_NETWORK, address
from mpisec_lab.overlay.base import QUEUE, configure, configure_or_fail, require, write_secret
from mpisec_lab.overlay.esp import padded

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster, Result
    from mpisec_lab.overlay.base import Overlay

_PACKAGES = "charon-systemd strongswan-swanctl libcharon-extra-plugins libstrongswan-standard-plugins"
_OVERHEAD = 20 + 8 + 8 + 8 + 16  # bytes of each packet: IPv4, UDP, ESP header, initialization vector, tag
_LONGEST = 1400  # libipsec reads no more from its device
_SECONDS = 10

# Nothing but these plugins is loaded, and nothing of the machine's own configuration read. The first that
# offers an algorithm provides it: aesni and openssl are the fast ones. kernel-libipsec comes before
# kernel-netlink, which then serves addresses and routes only.
_SETTINGS = """
charon {{
    load = random nonce aesni openssl kdf kernel-libipsec kernel-netlink socket-default vici
    plugins {{
        kernel-netlink {{
            roam_events = no
        }}
        vici {{
            socket = {socket}
        }}
    }}
    filelog {{
        stderr {{
            default = 1
        }}
    }}
}}
swanctl {{
    load = random openssl
}}
"""

# The tunnels are never set up anew: libipsec could do that only while its device has its first name.
_CONNECTION = """
    {other} {{
        local_addrs = {own_outer}
        remote_addrs = {other_outer}
        proposals = aes128gcm16-prfsha256-ecp256
        mobike = no
        rekey_time = 0
        local {{
            auth = psk
            id = {own}
        }}
        remote {{
            auth = psk
            id = {other}
        }}
        children {{
            {other} {{
                local_ts = {own_inner}/32
                remote_ts = {other_inner}/32
                esp_proposals = aes128gcm16
                rekey_time = 0
            }}
        }}
    }}
"""

_SECRET = """
secrets {{
    ike {{
        secret = 0x{}
    }}
}}
"""


def mtu(wire: int) -> int:
    """Bytes of the longest packet in a tunnel over a wire that takes `wire` bytes."""
    return min(_LONGEST, padded(wire - _OVERHEAD))


class StrongSwan:
    """The daemons of one cluster. Raises LabError when they are not installed or do not start."""

    def __init__(self, overlay: Overlay, cluster: Cluster) -> None:
        self.device = "ipsec0"  # libipsec's name for it
        self._overlay = overlay
        self._cluster = cluster
        self._nodes = range(len(cluster.names))
        programs = require(overlay.name, _PACKAGES, "charon-systemd", "swanctl")
        # Copies: Debian's AppArmor profiles, which go by the path, let them read no files of ours.
        charon, self._swanctl = (shutil.copy(program, cluster.directory) for program in programs)
        for node in self._nodes:
            self._file(node, "strongswan").write_text(_SETTINGS.format(socket=self._socket(node)))
            overlay.daemon(cluster, node, [*self._environment(node), charon])
        for node in self._nodes:
            self._wait_for(node)
        self.version = " ".join([*self._control(0, "--version", "--daemon").split()[:2], "libipsec"])

    def tunnels(self, network: int, mtu: int) -> None:
        """Sets up tunnels between the nodes' addresses in 10.`network`.0.0/16, which the device gets."""
        secret = secrets.token_hex(32)
        for node in self._nodes:
            errors = configure(
                self._cluster,
                node,
                f"link set {self.device} mtu {mtu} txqueuelen {QUEUE} up",
                f"addr add {address(node, network)}/16 dev {self.device}",
            )
            if errors:
                raise self._overlay.failed(f"charon made no {self.device}: `apt-get install {_PACKAGES}`")
            file = self._file(node, "swanctl")
            write_secret(file, self._configuration(node, network, secret))
            self._control(node, "--load-all", "--file", file)
        for node, other in combinations(self._nodes, 2):
            self._control(node, "--initiate", "--child", self._cluster.names[other], "--timeout", _SECONDS)

    def rename(self, name: str) -> None:
        """Calls the device `name` on every node."""
        for node in self._nodes:
            configure_or_fail(
                self._cluster,
                node,
                f"link set {self.device} down",
                f"link set {self.device} name {name}",
                f"link set {name} up",
            )
        self.device = name

    def cipher_from(self) -> str:
        """The plugin that provides AES-GCM."""
        found = re.search(r"AES_GCM_16\[(\w+)\]", self._control(0, "--list-algs"))
        if found is None:
            raise self._overlay.failed("no plugin of charon provides AES-GCM")
        return found.group(1)

    def _configuration(self, node: int, network: int, secret: str) -> str:
        names = self._cluster.names
        connections = [
            _CONNECTION.format(
                own=names[node],
                other=names[other],
                own_outer=address(node, UNDERLAY_NETWORK),
                other_outer=address(other, UNDERLAY_NETWORK),
                own_inner=address(node, network),
                other_inner=address(other, network),
            )
            for other in self._nodes
            if other != node
        ]
        return f"connections {{{''.join(connections)}}}\n{_SECRET.format(secret)}"

    def _wait_for(self, node: int) -> None:
        """Until the daemon answers."""
        deadline = time.monotonic() + _SECONDS
        while self._ask(node, "--stats").returncode != 0:
            self._overlay.check()
            if time.monotonic() > deadline:
                raise self._overlay.failed(f"charon does not answer on {self._cluster.names[node]}")
            time.sleep(0.05)

    def _control(self, node: int, *command: object) -> str:
        """What swanctl prints. Raises LabError when it fails."""
        asked = self._ask(node, *command)
        if asked.returncode != 0:
            reason = (asked.stderr or asked.stdout).strip().rpartition("\n")[2]
            what = f"`swanctl {' '.join(map(str, command))}` on {self._cluster.names[node]}"
            raise self._overlay.failed(f"{what}: {reason}")
        return asked.stdout

    def _ask(self, node: int, *command: object) -> Result:
        full = [*self._environment(node), self._swanctl, *command, "--uri", self._socket(node)]
        return self._cluster.execute(node, full, sweep=False)

    def _environment(self, node: int) -> list[str]:
        """Command line that sets where a daemon's and its tool's files are."""
        directory = self._cluster.directory
        return ["env", f"STRONGSWAN_CONF={self._file(node, 'strongswan')}", f"SWANCTL_DIR={directory}"]

    def _socket(self, node: int) -> str:
        return f"unix://{self._file(node, 'vici')}"

    def _file(self, node: int, suffix: str) -> Path:
        return self._cluster.directory / f"{self._cluster.names[node]}.{suffix}"
