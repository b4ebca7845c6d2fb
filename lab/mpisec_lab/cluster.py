"""Cluster: N nodes on this machine, made of namespaces, on which MPI jobs run.

    with Cluster(nodes=2) as cluster:
        result = cluster.run(["./app"], ranks=4, mpi="mpich-5")

Nodes differ in host name, network interface, /dev/shm and System V IPC; they see the same files and
processes. Whatever runs on a node is inside the cluster's PID namespace and dies with it (namespace_init.py).
"""

import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Self, TextIO, TypedDict, Unpack

from mpisec_lab import link, places
from mpisec_lab import overlay as overlays
from mpisec_lab.capture import Capture
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import Hosts, find_mpi
from mpisec_lab.namespace_init import BRIDGE, INTERFACE, UNDERLAY_INTERFACE, UNDERLAY_NETWORK, Config, address

PREFIX = "mpisec-lab-"
_START_SECONDS = 60
_PACKAGE = Path(__file__).resolve().parent
Words = Sequence[object]  # of a command line; each becomes a str


class Pipes(TypedDict, total=False):
    """Where a command's input comes from and its output goes to, as for subprocess.Popen."""

    stdin: int | IO[bytes] | None  # default: no input
    stdout: int | IO[bytes] | None
    stderr: int | IO[bytes] | None


@dataclass(frozen=True)
class Result:
    """What became of one job."""

    returncode: int  # the launcher's; 124 when the time ran out
    stdout: str
    stderr: str
    timed_out: bool
    left_over: list[str] = field(default_factory=list)  # command lines that outlived the job, or its time, and were killed

    def check(self) -> Self:
        """Returns itself, or raises LabError with the output when the job failed."""
        if self.returncode != 0:
            how = "ran out of time" if self.timed_out else f"ended with status {self.returncode}"
            raise LabError(f"the job {how}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}")
        return self


class JobOptions(TypedDict, total=False):
    """How Cluster.run() runs a job."""

    mpi: str  # a name of mpis.MPIS; default: mpich-5
    plain: bool  # without `mpisec exec`
    env: Mapping[str, object] | None  # variables for all ranks, over the MPISEC_… of our own environment (unless plain)
    node_env: Mapping[int, Mapping[str, object]] | None  # of a node's ranks, over env
    key: str | Path | None  # a key file for all nodes; default: a fresh one
    node_key: Mapping[int, str | Path] | None  # of some nodes
    mpisec: str | Path | None  # the program `mpisec`; default: as places.find_mpisec() finds it
    rate: float | None  # bits per second of every node's link; default: unlimited
    launcher: Sequence[str]  # further options for mpiexec
    timeout: float  # seconds, then the job is killed; default: 120
    stream: bool  # output goes to our own instead of into the Result


class Cluster:
    """A cluster of `nodes` nodes named node0, node1, …; a context manager.

    userspace_bridge: frames are forwarded by this process (tamper.Wire) rather than by the kernel, slowly.
    pin: give nodes disjoint cores when there are enough. mtu: bytes of a frame's payload on the wire.
    overlay: the name of an encrypted network to run jobs over (overlay/); its object then is `.overlay`.
    Raises LabError when the machine does not let it.
    """

    directory: Path  # from __enter__ to close()

    def __init__(self, nodes: int = 2, *, pin: bool = True, userspace_bridge: bool = False, mtu: int = 1500, overlay: str = "none") -> None:
        if not 1 <= nodes <= 64:
            raise LabError(f"a cluster has 1 to 64 nodes, not {nodes}")
        self.names = [f"node{i}" for i in range(nodes)]
        self.addresses = [address(i) for i in range(nodes)]
        self.underlay_addresses = self.addresses  # where the bridge's frames go to
        self.overlay = overlays.make(overlay)
        if self.overlay:
            self.underlay_addresses = [address(i, UNDERLAY_NETWORK) for i in range(nodes)]
        self.mtu = mtu
        self._userspace_bridge = userspace_bridge
        self._cores: list[str | None] = _core_sets(nodes) if pin else [None] * nodes
        self._reaper: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lifeline: int | None = None
        self._owner: TextIO | None = None
        self._user_namespace = False
        self._jobs: list[subprocess.Popen[bytes]] = []
        self._rate: float | str | None = None  # of every node's link

    def __enter__(self) -> Self:
        self._user_namespace = check_privileges()
        remove_stale()
        self.directory, self._owner = _make_directory()
        try:
            self._start_namespaces(self._owner)
            self._write_agent()
            if self.overlay:
                self.overlay.start(self)
                self.overlay.conditions["udp_buffer"] = min(self._request("spare")["buffers"], default=None)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every process of the cluster and removes it. May be called twice."""
        for job in self._jobs:
            job.kill()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._reaper is not None:
            self._reaper.wait()
            self._reaper = None
        for job in self._jobs:
            job.wait()
        self._jobs = []
        if self._owner is not None:
            self._owner.close()
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _start_namespaces(self, owner: TextIO) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lifeline_read, self._lifeline = os.pipe()
        config: Config = {
            "names": self.names,
            "directory": str(self.directory),
            "lab_pid": os.getpid(),
            "mtu": self.mtu,
            "overlay": self.overlay is not None,
            "control": theirs.fileno(),
            "lifeline": lifeline_read,
            "user_namespace": self._user_namespace,
            "userspace_bridge": self._userspace_bridge,
        }
        with theirs:
            self._reaper = subprocess.Popen(
                [sys.executable, "-P", "-c", "from mpisec_lab import namespace_init; namespace_init.main()", json.dumps(config)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), lifeline_read, owner.fileno()],
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": str(_PACKAGE.parent)},
            )
            os.close(lifeline_read)
        self._control.settimeout(_START_SECONDS)
        answer: dict[str, Any] = {}
        while not {"init", "holders"} <= answer.keys():
            message = self._control.recv(65536)
            if not message:
                raise LabError("the namespace init of the lab ended before the cluster stood")
            answer |= json.loads(message)
            if "error" in answer:
                raise LabError(f"the cluster could not be made: {answer['error']}")
        self._init: int = answer["init"]
        self._holders: list[int] = answer["holders"]

    def _write_agent(self) -> None:
        """Writes the ssh stand-in: `ssh [options] NODE command…` runs it there, with an empty environment."""
        cases = [
            f"    {name}) pid={pid}; cores={cores or ''} ;;"
            for name, pid, cores in zip(self.names, self._holders, self._cores)
        ]
        text = (_PACKAGE / "agent.sh").read_text()
        text = text.replace("@NODES@", "\n".join(cases)).replace("@DIRECTORY@", str(self.directory))
        self.agent = self.directory / "ssh"
        self.agent.write_text(text)
        self.agent.chmod(0o755)
        rank = self.directory / "rank"
        shutil.copyfile(_PACKAGE / "rank.sh", rank)
        rank.chmod(0o755)
        user = ["-U", "--preserve-credentials"] if self._user_namespace else []
        self._enter = ["nsenter", "-t", str(self._init), *user, "-m", "-n", "-i", "-p", "--"]
        for name in self.names:
            (self.directory / f"{name}.tmp").mkdir()
            (self.directory / f"{name}.env").write_text("")

    def popen(self, node: int, command: Words, **options: Unpack[Pipes]) -> subprocess.Popen[bytes]:
        """Starts `command` (list of str) on node number `node`; returns the Popen. Its environment is
        empty but for HOME, PATH and TMPDIR; killing the Popen does not kill the command, sweep() or
        close() do."""
        line = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(map(str, command))}"
        arguments = [*self._enter, str(self.agent), self.names[node], line]
        options.setdefault("stdin", subprocess.DEVNULL)
        job = subprocess.Popen(arguments, start_new_session=True, **options)
        self._jobs = [other for other in self._jobs if other.poll() is None] + [job]
        return job

    def popen_on_bridge(self, command: Words, **options: Unpack[Pipes]) -> subprocess.Popen[bytes]:
        """Starts `command` in the namespace that owns the bridge and sees every frame."""
        options.setdefault("stdin", subprocess.DEVNULL)
        job = subprocess.Popen([*self._enter, *map(str, command)], start_new_session=True, **options)
        self._jobs = [other for other in self._jobs if other.poll() is None] + [job]
        return job

    def execute(self, node: int, command: Words, timeout: float = 60, sweep: bool = True) -> Result:
        """Runs `command` on a node to its end; returns a Result. sweep=False: others may go on."""
        job = self.popen(node, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return self._finish(job, timeout, sweep)

    def run(self, command: Words, *, ranks: int, **options: Unpack[JobOptions]) -> Result:
        """Runs an MPI job: `command` on `ranks` ranks, block-wise over the nodes. Returns a Result. One job at a time per cluster."""
        implementation = find_mpi(options.get("mpi", "mpich-5"))
        if self.overlay:
            self.overlay.check()
        if not shutil.which(implementation.mpiexec):
            raise LabError(f"{implementation.title} is not installed here ({implementation.mpiexec} is missing): {implementation.how_to_install()}")
        prefix: list[str] = []
        binary = None if options.get("plain") else places.find_mpisec(options.get("mpisec"))
        if binary:
            prefix = [str(binary), "exec"]
            options["key"] = options.get("key") or os.environ.get("MPISEC_KEY_FILE") or self._make_key(binary)
        for node in range(len(self.names)):
            variables = implementation.environment | implementation.mpi4py | implementation.for_program(str(command[0]))
            self._write_environment(node, variables | _job_variables(node, options))
        self.set_rate(options.get("rate"))
        hosts = block_placement(self.names, ranks)
        launch = implementation.launch(hosts, str(self.agent), INTERFACE, self.directory)
        job_command = [launch[0], *options.get("launcher", ()), *launch[1:], str(self.directory / "rank"), *prefix, *map(str, command)]
        pipes: Pipes = {} if options.get("stream") else {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        result = self._finish(self.popen(0, job_command, **pipes), options.get("timeout", 120))
        if self.overlay and result.returncode != 0:
            self.overlay.check(grace=1)  # a daemon that ends takes its link along before it is seen to have ended
        return result

    def set_rate(self, rate: float | None) -> None:
        """Gives each direction of every node's link `rate` bits per second, None for unlimited, until it is set
        anew: run() does. Raises LabError."""
        if rate == self._rate:
            return
        self._rate = "unknown"
        wire = UNDERLAY_INTERFACE if self.overlay else INTERFACE
        for node in range(len(self.names)):
            for end, start in ((f"p{node}", self.popen_on_bridge), (wire, partial(self.popen, node))):
                command = link.bucket_command(end, rate)
                job = start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                said, _ = job.communicate()
                if job.returncode != 0:
                    raise LabError(f"the link's rate cannot be set: `{shlex.join(command)}`: {_text(said).strip()}")
        self._rate = rate

    def sweep(self, grace: float = 0.0) -> list[str]:
        """Kills what still runs on the nodes after `grace` seconds; returns the command lines of these."""
        return [command for _, command in self._request("sweep", grace=grace)["killed"]]

    def _channel(self) -> socket.socket:
        """To the cluster's init, between __enter__ and close()."""
        if self._control is None:
            raise LabError("the cluster does not stand: use it within its with-block")
        return self._control

    def _request(self, what: str, **details: object) -> dict[str, list[Any]]:
        channel = self._channel()
        channel.send(json.dumps({"request": what} | details).encode())
        answer: dict[str, list[Any]] = json.loads(channel.recv(1 << 20))
        return answer

    def bridge_ports(self) -> list[socket.socket]:
        """The nodes' ends of the wire as packet sockets, in node order (userspace_bridge only)."""
        channel = self._channel()
        channel.send(json.dumps({"request": "ports"}).encode())
        _, descriptors, _, _ = socket.recv_fds(channel, 4096, 64)
        if not descriptors:
            raise LabError("this cluster's bridge is the kernel's: make it with userspace_bridge=True")
        return [socket.socket(fileno=descriptor) for descriptor in descriptors]

    @property
    def bridge(self) -> str:
        """Name of the bridge's interface, for captures."""
        if self._user_namespace:
            raise LabError("captures need root: tcpdump cannot change its user in a user namespace")
        if self._userspace_bridge:
            raise LabError("captures need the kernel's bridge: make the cluster without userspace_bridge")
        return BRIDGE

    def capture(self, path: str | Path | None = None) -> Capture:
        """A Capture of every frame on the bridge, into the pcap file `path`; a context manager."""
        return Capture(self, path or self.directory / "capture.pcap")

    def _finish(self, job: subprocess.Popen[bytes], timeout: float, sweep: bool = True) -> Result:
        timed_out = False
        left_over: list[str] = []
        try:
            stdout, stderr = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            left_over = self.sweep()
            stdout, stderr = job.communicate()
        except BaseException:
            self.sweep()
            job.communicate()
            raise
        # Launchers may end a moment before their daemons on other nodes.
        if sweep and not timed_out:
            left_over = self.sweep(grace=2)
        returncode = 124 if timed_out else job.returncode
        if returncode < 0:
            returncode = 128 - returncode
        return Result(returncode, _text(stdout), _text(stderr), timed_out, left_over)

    def _write_environment(self, node: int, variables: Mapping[str, object]) -> None:
        name = self.names[node]
        # What a rank spawns starts with an empty environment, but for `rank PROGRAM`, which takes it from here too.
        own = {"TMPDIR": self.directory / f"{name}.tmp", "MPISEC_LAB_RANK": self.directory / "rank"}
        lines = [f"export {key}={shlex.quote(str(value))}" for key, value in (own | dict(variables)).items()]
        (self.directory / f"{name}.env").write_text("\n".join(lines) + "\n")

    def _make_key(self, binary: Path) -> Path:
        path = self.directory / "key"
        if not path.exists():
            made = subprocess.run(
                [str(binary), "key", "new", str(path)], capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                raise LabError(f"`{binary} key new` failed: {made.stderr.strip() or made.stdout.strip()}")
        return path


def block_placement(names: Sequence[str], ranks: int) -> Hosts:
    """[(name, ranks there)]: consecutive ranks on a node, as equal as can be; nodes without any left out."""
    if ranks < 1:
        raise LabError("a job needs at least one rank (-n)")
    count = len(names)
    shares = [ranks // count + (1 if i < ranks % count else 0) for i in range(count)]
    return [(name, share) for name, share in zip(names, shares) if share]


def check_privileges() -> bool:
    """Whether the lab's namespaces need a user namespace. Raises LabError when that is refused, too, or a program is missing."""

    def allowed(*options: str) -> bool:
        test = subprocess.run(
            ["unshare", *options, "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return test.returncode == 0

    if shutil.which("ip") is None:
        raise LabError("mpisec lab needs the program ip: `apt-get install iproute2` (tcpdump, too, for captures)")
    if allowed():
        return False
    if allowed("--map-root-user"):
        return True
    raise LabError(
        "mpisec lab makes network namespaces, which this user may not do here: run it as root "
        "(CAP_SYS_ADMIN and CAP_NET_ADMIN), or allow user namespaces (kernel.unprivileged_userns_clone=1)"
    )


def _make_directory() -> tuple[Path, TextIO]:
    """A new directory and its lock, held by us and the namespace init: with a free lock it would be stale."""
    unfinished = Path(tempfile.mkdtemp(prefix="mpisec-new-"))
    owner = open(unfinished / "owner", "w", encoding="ascii")  # noqa: SIM115 (the lock lives as long as the lab)
    fcntl.flock(owner, fcntl.LOCK_EX)
    return unfinished.rename(str(unfinished).replace("mpisec-new-", PREFIX)), owner


def remove_stale() -> list[Path]:
    """Removes what clusters of killed labs left in the temporary directory and returns it: files only,
    since the kernel has ended their processes and namespaces."""
    removed = []
    for directory in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        try:
            with open(directory / "owner", encoding="ascii") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
                removed.append(directory)
        except OSError:
            continue  # in use, being made, or not ours
    return removed


def _job_variables(node: int, options: JobOptions) -> dict[str, object]:
    """What a job's options add to a node's environment."""
    variables: dict[str, object] = {}
    if not options.get("plain"):
        variables |= _mpisec_settings() | {"MPISEC_KEY_FILE": (options.get("node_key") or {}).get(node, options.get("key"))}
    return variables | dict(options.get("env") or {}) | dict((options.get("node_env") or {}).get(node, {}))


def _mpisec_settings() -> dict[str, str]:
    """The MPISEC_ settings of our own environment, for the ranks, without those of the lab itself and of its tests."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("MPISEC_") and not name.startswith("MPISEC_LAB_")
    }


def _core_sets(nodes: int) -> list[str | None]:
    """Disjoint core lists (for taskset), one per node; Nones when there are fewer cores than nodes."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < nodes:
        return [None] * nodes
    each = len(cores) // nodes
    return [",".join(map(str, cores[i * each : (i + 1) * each])) for i in range(nodes)]


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace")


def interrupt_on_terminate() -> None:
    """Makes SIGTERM end the lab as ^C does, so that with-blocks run."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
