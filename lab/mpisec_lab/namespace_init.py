"""Holds a cluster's namespaces open, and takes them down whatever happens to the lab.

Who is who:

    lab      the caller; holds the write end of a pipe
    reaper   waits for that pipe to close; parent of
    init     PID 1 of the cluster's PID namespace; owns the bridge; parent of
    holders  one per node: its network, UTS and IPC namespaces, its mounts

The namespaces have no names in /run/netns: they exist as long as a process is in them. When init is killed
the kernel kills every process of the PID namespace, then frees networks, mounts and shared memory: nothing
can be left behind by a daemon that left its process group. The reaper kills init when the lab closes its
pipe or dies, SIGKILL included; init dies with the reaper (PR_SET_PDEATHSIG). Started by cluster.py.
"""

import array
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TypedDict

from mpisec_lab import linux, offload

BRIDGE = "br0"
INTERFACE = "eth0"
UNDERLAY_INTERFACE = "under0"  # the wire's name on nodes whose eth0 is an overlay's device
NETWORK = 77  # 10.77.0.0/16, where MPI runs: the wire, or an overlay
UNDERLAY_NETWORK = 78  # the wire below an overlay
_ETH_P_ALL = 0x0003
_DAEMON_BUFFER = 8 << 20
_PACKET_IGNORE_OUTGOING = 23
_SO_RCVBUFFORCE = 33
_SOL_PACKET = 263


class Config(TypedDict):
    """What cluster.py gives the namespace init, as JSON."""

    names: list[str]
    directory: str
    lab_pid: int
    mtu: int
    overlay: bool
    control: int  # descriptors, of a socket for requests
    lifeline: int  # and of the pipe that the lab holds
    user_namespace: bool
    userspace_bridge: bool


def address(node: int, network: int = NETWORK) -> str:
    """IPv4 address of node number `node` (0 based) in 10.`network`.0.0/16."""
    return f"10.{network}.{(node + 1) // 250}.{(node + 1) % 250}"


def _become_root_in_user_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def _hold_node(name: str, ready: int, go: int) -> NoReturn:
    """A holder's whole life: makes the node's namespaces, says so on `ready`, then reaps what dies there."""
    linux.die_with_parent()
    linux.unshare(linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC)
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    socket.sethostname(name)
    linux.mount("tmpfs", "/dev/shm", "tmpfs", data="mode=1777")
    try:
        # UCX and hwloc list network interfaces through /sys, which shows the namespace it was mounted in.
        linux.mount("sysfs", "/sys", "sysfs")
    except OSError:
        pass  # refused in user namespaces when parts of /sys are hidden; the host's /sys then stays visible
    os.write(ready, b"1")
    os.read(go, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        signal.pause()


def _ip(commands: Sequence[str], node_pid: int | None = None) -> None:
    enter = ["nsenter", "-t", str(node_pid), "-n"] if node_pid else []
    subprocess.run([*enter, "ip", "-batch", "-"], input="\n".join(commands) + "\n", text=True, check=True)


class _Init:
    """PID 1 of the cluster: sets the network up, then serves the lab's requests until it is killed."""

    def __init__(self, config: Config, control: socket.socket) -> None:
        self.names = config["names"]
        self.userspace_bridge = config["userspace_bridge"]
        self.mtu = config["mtu"]
        self.interface = UNDERLAY_INTERFACE if config["overlay"] else INTERFACE
        self.network = UNDERLAY_NETWORK if config["overlay"] else NETWORK
        self.directory = Path(config["directory"])
        self.control = control
        self.holders: list[int] = []
        self.spared: set[int] = set()  # processes on nodes that are part of them: the overlay's daemons
        self.ports: list[socket.socket] = []  # AF_PACKET sockets, one per node, when the bridge is in user space

    def start(self) -> None:
        linux.die_with_parent()
        linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("proc", "/proc", "proc")
        hosts = ["127.0.0.1 localhost"] + [f"{address(i)} {name}" for i, name in enumerate(self.names)]
        (self.directory / "hosts").write_text("\n".join(hosts) + "\n")
        if not Path("/etc/hosts").exists():  # on a bare machine; ours is laid over it
            Path("/etc/hosts").touch()
        linux.mount(str(self.directory / "hosts"), "/etc/hosts", flags=linux.MS_BIND)
        _ip(["link set lo up"])
        if not self.userspace_bridge:
            # Snooping would have the bridge send reports of its own.
            _ip([f"link add {BRIDGE} type bridge mcast_snooping 0", f"link set {BRIDGE} mtu {self.mtu} up"])
        go_read, go_write = os.pipe()
        self.holders = [self._fork_holder(name, go_read, go_write) for name in self.names]
        self._connect()
        if self.userspace_bridge:
            self.ports = [self._open_port(f"p{i}") for i in range(len(self.names))]
        os.close(go_write)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans of the jobs are ours to reap

    def _fork_holder(self, name: str, go_read: int, go_write: int) -> int:
        ready_read, ready_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go_write)
            self.control.close()
            try:
                _hold_node(name, ready_write, go_read)
            finally:
                os._exit(1)
        os.close(ready_write)
        if os.read(ready_read, 1) != b"1":
            raise RuntimeError(f"node {name} could not be made")
        os.close(ready_read)
        return pid

    def _connect(self) -> None:
        """A veth pair per node: p<i> here, eth0 or under0 there; MAC addresses and neighbours are fixed, so
        no ARP."""
        commands = []
        wire = self.interface
        for i in range(len(self.holders)):
            commands.append(f"link add p{i} mtu {self.mtu} type veth peer name n{i} mtu {self.mtu}")
            commands.append(
                f"link set p{i} up" if self.userspace_bridge else f"link set p{i} master {BRIDGE} up"
            )
        _ip(commands)
        for i, pid in enumerate(self.holders):
            if self.userspace_bridge:
                offload.disable(f"n{i}")
            _ip([f"link set n{i} netns {pid} name {wire}"])
            others = [j for j in range(len(self.holders)) if j != i]
            _ip(
                [
                    "link set lo up",
                    f"link set {wire} address {mac(i)} up",
                    f"addr add {address(i, self.network)}/16 dev {wire}",
                    *[
                        f"neigh add {address(j, self.network)} lladdr {mac(j)} dev {wire} nud permanent"
                        for j in others
                    ],
                ],
                pid,
            )
            # BBR paces by an estimate of its own. Not every namespace may choose cubic.
            file = "/proc/sys/net/ipv4/tcp_congestion_control"
            subprocess.run(
                ["nsenter", "-t", str(pid), "-n", "sh", "-c", f"echo cubic > {file} || echo reno > {file}"],
                check=True,
                stderr=subprocess.DEVNULL,
            )

    def _open_port(self, name: str) -> socket.socket:
        port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        port.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        port.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 64 << 20)
        port.bind((name, _ETH_P_ALL))
        return port

    def serve(self) -> NoReturn:
        while True:
            request = self.control.recv(4096)
            if not request:
                os._exit(0)
            wish = json.loads(request)
            if wish["request"] == "sweep":
                self._reply({"killed": self._sweep(wish["grace"])})
            elif wish["request"] == "spare":
                self.spared = set(self._processes_on_nodes())
                self._reply({"buffers": [size for pid in self.spared for size in _widen_buffers(pid)]})
            elif wish["request"] == "ports":
                self._reply({"ports": len(self.ports)}, [port.fileno() for port in self.ports])

    def _reply(self, message: dict[str, object], descriptors: Sequence[int] = ()) -> None:
        rights = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        )
        self.control.sendmsg([json.dumps(message).encode()], rights)

    def _sweep(self, grace: float) -> list[tuple[int, str]]:
        """SIGKILLs what is on nodes after `grace` seconds, holders and spared apart; returns [pid, command]
        of each."""
        found: dict[int, str] = {}
        begin = time.monotonic()
        while (elapsed := time.monotonic() - begin) < grace + 5:
            alive = self._processes_on_nodes()
            if not alive:
                break
            for pid in alive if elapsed >= grace else []:
                found.setdefault(pid, _command(pid))
                _kill(pid)
            time.sleep(0.002)
        return list(found.items())

    def _processes_on_nodes(self) -> list[int]:
        own_network = os.readlink("/proc/self/ns/net")
        ours = {os.getpid(), *self.holders, *self.spared}
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) not in ours]
        return [pid for pid in pids if _network(pid) not in (own_network, None)]


def mac(node: int, network: int = 0) -> str:
    """Ethernet address of node number `node` (0 based); `network` (0 to 255) tells apart several of it."""
    return f"02:00:00:{network:02x}:{node >> 8:02x}:{node & 255:02x}"


def _widen_buffers(pid: int) -> list[int]:
    """Gives a daemon's UDP sockets room for bursts, and returns how many bytes each then has: the default of
    208 KiB holds 90 packets, and cannot be set for a namespace."""
    sizes = []
    try:
        for link in list(Path(f"/proc/{pid}/fd").iterdir()):
            if os.readlink(link).startswith("socket:"):
                with socket.socket(fileno=linux.take_descriptor(pid, int(link.name))) as taken:
                    if taken.family in (socket.AF_INET, socket.AF_INET6) and taken.type == socket.SOCK_DGRAM:
                        sizes.append(_widen(taken))
    except OSError:
        pass  # it has ended, or is not ours to touch: what was reached is reported
    return sizes


def _widen(udp: socket.socket) -> int:
    try:
        udp.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _DAEMON_BUFFER)
    except PermissionError:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _DAEMON_BUFFER)  # up to what this machine allows
    return udp.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2  # the kernel doubles what is set


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _network(pid: int) -> str | None:
    """Which network namespace a process is in; None when it is gone or a zombie."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _reap(init: int, lifeline: int, lab: int, directory: str) -> None:
    """Waits until the lab closes the lifeline or dies, or init dies; then takes everything down."""
    poll = select.poll()
    for descriptor in (lifeline, lab, os.pidfd_open(init)):
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    poll.poll()
    _kill(init)
    os.waitpid(init, 0)  # returns when the kernel has ended every process of the PID namespace
    shutil.rmtree(directory, ignore_errors=True)


def main() -> None:
    config: Config = json.loads(sys.argv[1])
    lab = os.pidfd_open(config["lab_pid"])
    control = socket.socket(fileno=config["control"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if config["user_namespace"]:
            _become_root_in_user_namespace()
        linux.unshare(linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC)
        init = os.fork()
    except OSError as error:
        control.send(json.dumps({"error": str(error)}).encode())
        sys.exit(1)
    if init == 0:
        os.close(config["lifeline"])
        cluster = _Init(config, control)
        try:
            cluster.start()
        except BaseException as error:  # whatever it was, the caller must hear of it rather than wait
            control.send(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
            os._exit(1)
        control.send(json.dumps({"holders": cluster.holders}).encode())
        cluster.serve()
    with contextlib.suppress(BrokenPipeError):  # the lab may have gone already
        control.send(json.dumps({"init": init}).encode())  # as the lab sees it: init knows itself as 1
    control.close()
    _reap(init, config["lifeline"], lab, config["directory"])


if __name__ == "__main__":
    main()
