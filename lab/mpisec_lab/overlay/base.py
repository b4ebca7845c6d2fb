"""What all overlays share: conditions, daemons, and the test that every node reaches every other one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from mpisec_lab.errors import LabError
from mpisec_lab.linux import output_of
from mpisec_lab.namespace_init import BRIDGE, UNDERLAY_INTERFACE

if TYPE_CHECKING:
    from mpisec_lab.cluster import Cluster, Pipes, Words

KERNEL = "kernel"
USER_SPACE = "user space"
QUEUE = 1000  # packets that wait for a daemon to read them from its TUN device; the kernel's default is 500
_REACH = str(Path(__file__).resolve().parent / "reach.py")
_REACH_SECONDS = 10
_LOG_LINES = 8


class Overlay:
    """An overlay of one cluster. Subclasses have a `name` and connect(cluster), which calls describe()."""

    name = ""

    def __init__(self) -> None:
        # For result files: overlay, data_plane, runs_in, cipher, mtu, udp_buffer (bytes; None: no daemon)
        self.conditions: dict[str, str | int | None] = {}
        self._daemons: list[tuple[str, subprocess.Popen[bytes], Path]] = []  # (node's name, Popen, its log's Path)

    def connect(self, cluster: Cluster) -> None:
        """Gives every node its `eth0`. Raises LabError."""
        raise NotImplementedError

    def start(self, cluster: Cluster) -> None:
        """Connects all nodes and waits until each has received a few full packets from each other one.
        Raises LabError that names nodes and quotes the daemons."""
        _silence_ipv6(cluster)
        self.connect(cluster)
        unreached = [
            f"{node} does not hear {cluster.names[cluster.addresses.index(other)]}"
            for node, others in _reach(cluster).items()
            for other in others
        ]
        if unreached:
            raise self.failed("; ".join(unreached))

    def describe(self, data_plane: str, runs_in: str, cipher: str, mtu: int) -> None:
        """Says what carries this overlay's packets; mtu in bytes."""
        self.conditions = {
            "overlay": self.name,
            "data_plane": data_plane,
            "runs_in": runs_in,
            "cipher": cipher,
            "mtu": mtu,
        }

    @property
    def description(self) -> str:
        """A line for the user."""
        said = self.conditions
        return (
            f"overlay {self.name}: {said['data_plane']} ({said['runs_in']}), "
            f"{said['cipher']}, mtu {said['mtu']}"
        )

    def check(self, grace: float = 0) -> None:
        """Raises LabError when a daemon has ended, or ends within `grace` seconds: a job would hang."""
        deadline = time.monotonic() + grace
        while True:
            ended = [name for name, daemon, _ in self._daemons if daemon.poll() is not None]
            if ended:
                raise self.failed(f"the daemon of {', '.join(ended)} has ended")
            if time.monotonic() >= deadline:
                return
            time.sleep(0.05)

    def daemon(self, cluster: Cluster, node: int, command: Words, **options: Unpack[Pipes]) -> subprocess.Popen[bytes]:
        """Starts a daemon on node number `node`, on the node's cores; what it says goes to a log. Returns
        its Popen; it ends with the cluster."""
        name = cluster.names[node]
        path = cluster.directory / f"{name}.overlay.log"
        with open(path, "ab") as log:
            options.setdefault("stdout", log)
            options.setdefault("stderr", log)
            started = cluster.popen(node, command, **options)
        self._daemons.append((name, started, path))
        return started

    def failed(self, what: str) -> LabError:
        """A LabError that says `what` went wrong, and the daemons' last words."""
        return LabError(f"overlay {self.name}: {what}{self._logs()}")

    def _logs(self) -> str:
        said: list[str] = []
        for name, _, path in self._daemons:
            lines = path.read_text(errors="replace").splitlines()[-_LOG_LINES:] if path.exists() else []
            said += [f"\n  {name}: {line}" for line in lines]
        return "".join(said)


def require(overlay: str, packages: str, *programs: str) -> list[str]:
    """Absolute paths (list) of `programs`. Raises LabError that names the Debian packages to install."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/lib/ipsec"
    found = []
    for program in programs:
        place = shutil.which(program, path=path)
        if place is None:
            raise LabError(f"overlay {overlay} needs {program} here: `apt-get install {packages}`")
        found.append(place)
    return found


def configure(cluster: Cluster, node: int, *commands: str, program: str = "ip") -> str:
    """Runs `commands` of iproute2's `program` on a node; secrets in them are on no command line. Returns
    what it had to object, which is empty when all went well."""
    job = cluster.popen(
        node,
        [program, "-force", "-batch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, errors = job.communicate("".join(f"{command}\n" for command in commands).encode())
    return errors.decode(errors="replace").strip() if job.returncode else ""


def configure_or_fail(cluster: Cluster, node: int, *commands: str, program: str = "ip") -> None:
    """As configure, but raises LabError with what was objected."""
    errors = configure(cluster, node, *commands, program=program)
    if errors:
        raise LabError(f"{cluster.names[node]}: `{program}` could not set the overlay up: {errors}")


def write_secret(path: Path, text: str) -> None:
    """Writes a file that only we can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)


def _silence_ipv6(cluster: Cluster) -> None:
    """Leaves the wire to the overlay, which needs IPv4 alone: else the kernel looks for routers there."""
    write = "echo 1 > /proc/sys/net/ipv6/conf/$0/disable_ipv6"
    jobs = [cluster.popen_on_bridge(["sh", "-c", write, BRIDGE], stderr=subprocess.DEVNULL)]
    for node in range(len(cluster.names)):
        for interface in UNDERLAY_INTERFACE, "default":
            jobs.append(cluster.popen(node, ["sh", "-c", write, interface], stderr=subprocess.DEVNULL))
    for job in jobs:
        job.wait()


def _reach(cluster: Cluster) -> dict[str, list[str]]:
    """{node's name: [addresses of nodes that it did not receive from]}."""
    others = [[other for other in cluster.addresses if other != own] for own in cluster.addresses]
    jobs = []
    for node, own in enumerate(cluster.addresses):
        command = [sys.executable, _REACH, own, _REACH_SECONDS, *others[node]]
        jobs.append(cluster.popen(node, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    answers = [output_of(job).readline() for job in jobs]
    for job in jobs:
        job.communicate()
    return {
        name: json.loads(answer) if answer else others[node]
        for node, (name, answer) in enumerate(zip(cluster.names, answers))
    }
