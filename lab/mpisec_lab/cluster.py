"""Cluster: N nodes on this machine, made of namespaces, on which MPI jobs run.

    with Cluster(nodes=2) as cluster:
        result = cluster.run(["./app"], ranks=4, mpi="mpich-5")

Nodes differ in host name, network interface, /dev/shm and System V IPC; they see the same files and
processes. Whatever runs on a node is inside the cluster's PID namespace and dies with it (keeper.py).
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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mpisec_lab import link, places
from mpisec_lab import overlay as overlays
from mpisec_lab.capture import Capture
from mpisec_lab.errors import LabError
from mpisec_lab.keeper import BRIDGE, INTERFACE, UNDERLAY_INTERFACE, UNDERLAY_NETWORK, address
from mpisec_lab.mpis import find_mpi

PREFIX = "mpisec-lab-"
_START_SECONDS = 60
_PACKAGE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Result:
    """What became of one job."""

    returncode: int  # the launcher's; 124 when the time ran out
    stdout: str
    stderr: str
    timed_out: bool
    left_over: list = field(default_factory=list)  # command lines that outlived the job, or its time, and were killed

    def check(self):
        """Returns itself, or raises LabError with the output when the job failed."""
        if self.returncode != 0:
            how = "ran out of time" if self.timed_out else f"ended with status {self.returncode}"
            raise LabError(f"the job {how}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}")
        return self


class Cluster:
    """A cluster of `nodes` nodes named node0, node1, …; a context manager.

    userspace_bridge: frames are forwarded by this process (tamper.Wire) rather than by the kernel, slowly.
    pin: give nodes disjoint cores when there are enough. mtu: bytes of a frame's payload on the wire.
    overlay: the name of an encrypted network to run jobs over (overlay/); its object then is `.overlay`.
    Raises LabError when the machine does not let it.
    """

    def __init__(self, nodes=2, *, pin=True, userspace_bridge=False, mtu=1500, overlay="none"):
        if not 1 <= nodes <= 64:
            raise LabError(f"a cluster has 1 to 64 nodes, not {nodes}")
        self.names = [f"node{i}" for i in range(nodes)]
        self.addresses = [address(i) for i in range(nodes)]
        self.underlay_addresses = self.addresses  # where the bridge's frames go to
        self.overlay = overlays.make(overlay)
        if self.overlay:
            self.underlay_addresses = [address(i, UNDERLAY_NETWORK) for i in range(nodes)]
        self.mtu = mtu
        self.directory = None
        self._userspace_bridge = userspace_bridge
        self._cores = _core_sets(nodes) if pin else [None] * nodes
        self._init = None
        self._keeper = None
        self._control = None
        self._lifeline = None
        self._owner = None
        self._user_namespace = False
        self._jobs = []
        self._rate = None  # of every node's link

    def __enter__(self):
        self._user_namespace = check_privileges()
        remove_stale()
        self.directory, self._owner = _make_directory()
        try:
            self._start_keeper()
            self._write_agent()
            if self.overlay:
                self.overlay.start(self)
                self.overlay.conditions["udp_buffer"] = min(self._request("spare")["buffers"], default=None)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends every process of the cluster and removes it. May be called twice."""
        for job in self._jobs:
            job.kill()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._keeper is not None:
            self._keeper.wait()
            self._keeper = None
        for job in self._jobs:
            job.wait()
        self._jobs = []
        if self._owner is not None:
            self._owner.close()
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _start_keeper(self):
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        lifeline_read, self._lifeline = os.pipe()
        config = {
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
            self._keeper = subprocess.Popen(
                [sys.executable, "-c", "from mpisec_lab import keeper; keeper.main()", json.dumps(config)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), lifeline_read, self._owner.fileno()],
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": str(_PACKAGE.parent)},
            )
            os.close(lifeline_read)
        self._control.settimeout(_START_SECONDS)
        answer = {}
        while not {"init", "holders"} <= answer.keys():
            message = self._control.recv(65536)
            if not message:
                raise LabError("the lab's keeper ended before the cluster stood")
            answer |= json.loads(message)
            if "error" in answer:
                raise LabError(f"the cluster could not be made: {answer['error']}")
        self._init = answer["init"]
        self._holders = answer["holders"]

    def _write_agent(self):
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

    def popen(self, node, command, **options):
        """Starts `command` (list of str) on node number `node`; returns the Popen. Its environment is
        empty but for HOME, PATH and TMPDIR; killing the Popen does not kill the command, sweep() or
        close() do."""
        line = f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(map(str, command))}"
        arguments = [*self._enter, str(self.agent), self.names[node], line]
        job = subprocess.Popen(arguments, start_new_session=True, **{"stdin": subprocess.DEVNULL, **options})
        self._jobs = [other for other in self._jobs if other.poll() is None] + [job]
        return job

    def popen_on_bridge(self, command, **options):
        """Starts `command` in the namespace that owns the bridge and sees every frame."""
        job = subprocess.Popen(
            [*self._enter, *map(str, command)],
            start_new_session=True,
            **{"stdin": subprocess.DEVNULL, **options},
        )
        self._jobs = [other for other in self._jobs if other.poll() is None] + [job]
        return job

    def execute(self, node, command, timeout=60, sweep=True):
        """Runs `command` on a node to its end; returns a Result. sweep=False: others may go on."""
        job = self.popen(node, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return self._finish(job, timeout, sweep)

    def run(
        self,
        command,
        *,
        ranks,
        mpi="mpich-5",
        plain=False,
        env=None,
        node_env=None,
        node_key=None,
        key=None,
        mpisec=None,
        rate=None,
        timeout=120,
        stream=False,
    ):
        """Runs an MPI job: `command` on `ranks` ranks, block-wise over the nodes. Returns a Result.

        command: list of str; mpi: a name of mpis.MPIS; plain: without `mpisec exec`.
        env: variables for all ranks, over the MPISEC_… of our own environment (unless plain); node_env:
        {node: {name: value}}, over env. They are set on the node.
        key: a key file for all nodes (default: a fresh one); node_key: {node: file} for some.
        rate: bits per second of every node's link, None for unlimited. timeout: seconds, then the job is
        killed.
        stream: output goes to our own instead of into the Result. One job at a time per cluster.
        """
        implementation = find_mpi(mpi)
        if self.overlay:
            self.overlay.check()
        if not shutil.which(implementation.mpiexec):
            raise LabError(f"{implementation.title} is not installed here ({implementation.mpiexec} is missing): {implementation.how_to_install()}")
        prefix = []
        if not plain:
            binary = places.find_mpisec(mpisec)
            prefix = [str(binary), "exec"]
            key = key or os.environ.get("MPISEC_KEY_FILE") or self._make_key(binary)
        for node in range(len(self.names)):
            variables = implementation.environment | implementation.mpi4py | implementation.for_program(command[0])
            if not plain:
                variables |= _mpisec_settings() | {"MPISEC_KEY_FILE": (node_key or {}).get(node, key)}
            variables |= (env or {}) | (node_env or {}).get(node, {})
            self._write_environment(node, variables)
        self.set_rate(rate)
        hosts = block_placement(self.names, ranks)
        launch = implementation.launch(hosts, str(self.agent), INTERFACE, self.directory)
        job_command = [*launch, str(self.directory / "rank"), *prefix, *map(str, command)]
        pipes = {} if stream else {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        result = self._finish(self.popen(0, job_command, **pipes), timeout)
        if self.overlay and result.returncode != 0:
            self.overlay.check(grace=1)  # a daemon that ends takes its link along before it is seen to have ended
        return result

    def set_rate(self, rate):
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

    def sweep(self, grace=0.0):
        """Kills what still runs on the nodes after `grace` seconds; returns the command lines of these."""
        return [command for _, command in self._request("sweep", grace=grace)["killed"]]

    def _request(self, what, **details):
        self._control.send(json.dumps({"request": what} | details).encode())
        return json.loads(self._control.recv(1 << 20))

    def bridge_ports(self):
        """The nodes' ends of the wire as packet sockets, in node order (userspace_bridge only)."""
        self._control.send(json.dumps({"request": "ports"}).encode())
        _, descriptors, _, _ = socket.recv_fds(self._control, 4096, 64)
        if not descriptors:
            raise LabError("this cluster's bridge is the kernel's: make it with userspace_bridge=True")
        return [socket.socket(fileno=descriptor) for descriptor in descriptors]

    @property
    def bridge(self):
        """Name of the bridge's interface, for captures."""
        if self._user_namespace:
            raise LabError("captures need root: tcpdump cannot change its user in a user namespace")
        if self._userspace_bridge:
            raise LabError("captures need the kernel's bridge: make the cluster without userspace_bridge")
        return BRIDGE

    def capture(self, path=None):
        """A Capture of every frame on the bridge, into the pcap file `path`; a context manager."""
        return Capture(self, path or self.directory / "capture.pcap")

    def _finish(self, job, timeout, sweep=True):
        timed_out, left_over = False, []
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

    def _write_environment(self, node, variables):
        name = self.names[node]
        variables = {"TMPDIR": self.directory / f"{name}.tmp"} | variables
        lines = [f"export {key}={shlex.quote(str(value))}" for key, value in variables.items()]
        (self.directory / f"{name}.env").write_text("\n".join(lines) + "\n")

    def _make_key(self, binary):
        path = self.directory / "key"
        if not path.exists():
            made = subprocess.run(
                [str(binary), "key", "new", str(path)], capture_output=True, text=True, check=False
            )
            if made.returncode != 0:
                raise LabError(f"`{binary} key new` failed: {made.stderr.strip() or made.stdout.strip()}")
        return path


def block_placement(names, ranks):
    """[(name, ranks there)]: consecutive ranks on a node, as equal as can be; nodes without any left out."""
    if ranks < 1:
        raise LabError("a job needs at least one rank (-n)")
    count = len(names)
    shares = [ranks // count + (1 if i < ranks % count else 0) for i in range(count)]
    return [(name, share) for name, share in zip(names, shares) if share]


def check_privileges():
    """Whether the lab's namespaces need a user namespace. Raises LabError when that is refused, too."""

    def allowed(*options):
        test = subprocess.run(
            ["unshare", *options, "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "true"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return test.returncode == 0

    if allowed():
        return False
    if allowed("--map-root-user"):
        return True
    raise LabError(
        "mpisec lab makes network namespaces, which this user may not do here: run it as root "
        "(CAP_SYS_ADMIN and CAP_NET_ADMIN), or allow user namespaces (kernel.unprivileged_userns_clone=1)"
    )


def _make_directory():
    """A new directory and its lock, held by us and the keeper: with a free lock it would be stale."""
    unfinished = Path(tempfile.mkdtemp(prefix="mpisec-new-"))
    owner = open(unfinished / "owner", "w", encoding="ascii")  # noqa: SIM115 (the lock lives as long as the lab)
    fcntl.flock(owner, fcntl.LOCK_EX)
    return unfinished.rename(str(unfinished).replace("mpisec-new-", PREFIX)), owner


def remove_stale():
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


def _mpisec_settings():
    """The MPISEC_ settings of our own environment, for the ranks, without those of the lab itself and of its tests."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("MPISEC_") and not name.startswith("MPISEC_LAB_")
    }


def _core_sets(nodes):
    """Disjoint core lists (for taskset), one per node; Nones when there are fewer cores than nodes."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < nodes:
        return [None] * nodes
    each = len(cores) // nodes
    return [",".join(map(str, cores[i * each : (i + 1) * each])) for i in range(nodes)]


def _text(data):
    return "" if data is None else data.decode(errors="replace")


def interrupt_on_terminate():
    """Makes SIGTERM end the lab as ^C does, so that with-blocks run."""

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
