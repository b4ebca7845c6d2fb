"""SlurmCluster: a Cluster with Slurm on it.

    with SlurmCluster(nodes=2) as cluster:
        result = cluster.submit(["srun", "-N2", "-n4", "--mpi=pmi2", mpisec, "exec", "./app"], mpi="mpich-5")

The last node is the head, named so: slurmctld runs there, and what users type. Every node has a /run of its own with a munged, and the same
/etc/slurm.
"""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from mpisec_lab import places
from mpisec_lab.cluster import Cluster, Pipes, Result, Words
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import find_mpi
from mpisec_lab.slurm import configuration

PACKAGES = "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmi2-0 libpmix2"
HEAD = "head"
_PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")
_START_SECONDS = 60
_STARTS = 5
_TRANSPORTS = {"orte": "tcp,vader,self", "prrte": "tcp,sm,self"}  # as the lab's own launch of Open MPI asks for

# A node's part, in its own mount namespace: /run and /etc/slurm are the node's own, then munged.
_PREPARE = """
mount -t tmpfs -o mode=755 none /run && mkdir -m 755 /run/munge &&
mount --bind "$0" /etc/slurm && exec munged --key-file="$1" --log-file=/run/munge/log --seed-file=/run/munge/seed
"""

# Ends the daemon with process id $0, within ten seconds.
_END = 'kill "$0" && for i in $(seq 100); do kill -0 "$0" 2>/dev/null || exit 0; sleep 0.1; done; exit 1'


class SubmitOptions(TypedDict, total=False):
    """How SlurmCluster.submit() runs a command on the head."""

    mpi: str  # a name of mpis.MPIS, whose variables and programs the command gets; default: mpich-5
    env: Mapping[str, object] | None  # variables of the command, which srun and sbatch hand on to the job
    timeout: float  # seconds, then what runs on the nodes is killed; default: 120


class SlurmCluster(Cluster):
    """A cluster of `nodes` nodes node0, node1, … and a head, with Slurm running.

    settings: lines of slurm.conf that are added (before the nodes'). plugstack: SPANK plug-ins, as in plugstack.conf.
    """

    def __init__(self, nodes: int = 2, *, settings: Mapping[str, str] | None = None, plugstack: str = "") -> None:
        super().__init__(nodes + 1, pin=False)
        self.names[-1] = HEAD
        self._settings = settings or {}
        self._plugstack = plugstack

    def __enter__(self) -> Self:
        require_packages()
        super().__enter__()
        try:
            if self._user_namespace:
                raise LabError("Slurm's daemons need root: run `mpisec lab slurm` as root")
            self._start_slurm()
        except BaseException:
            self.close()
            raise
        return self

    @property
    def head(self) -> int:
        """The head's number."""
        return len(self.names) - 1

    def start(self, command: Words, *, mpi: str = "mpich-5", env: Mapping[str, object] | None = None, **pipes: Unpack[Pipes]) -> subprocess.Popen[bytes]:
        """Starts `command` on the head, with the variables of `mpi` and its programs and mpisec on PATH; returns the Popen."""
        return self.popen(self.head, self.on_head(command, mpi=mpi, env=env), **pipes)

    def submit(self, command: Words, **options: Unpack[SubmitOptions]) -> Result:
        """Runs `command` on the head to its end; returns a Result. Processes that it left on nodes stay."""
        words = self.on_head(command, mpi=options.get("mpi", "mpich-5"), env=options.get("env"))
        result = self.execute(self.head, words, timeout=options.get("timeout", 120), sweep=False)
        if result.timed_out:  # its job may be in the way of the next one
            self.cancel_all()
        return result

    def cancel_all(self) -> None:
        """Ends every job, waits until the nodes are free and kills what is left there."""
        self.execute(self.head, ["scancel", "--user=root"], sweep=False)
        self.left_over()
        self._wait_until_idle()

    def way_in(self) -> dict[str, Any]:
        """How another process gets onto the head, as long as this cluster stands, and the key that is there."""
        enter = [*self._enter, str(self.agent), self.names[self.head]]
        return {"nodes": self.names[:-1], "enter": enter, "key": str(self.key())}

    def key(self) -> Path:
        """A key file that all nodes see, as in a home directory that they share."""
        return self._make_key(places.find_mpisec())

    def on_head(self, command: Words, *, mpi: str = "mpich-5", env: Mapping[str, object] | None = None) -> list[str]:
        """`command` with its variables, as words for popen()."""
        variables = variables_for(mpi) | {name: str(value) for name, value in (env or {}).items()}
        return ["env", *(f"{name}={value}" for name, value in variables.items()), *map(str, command)]

    def left_over(self, grace: float = 5) -> list[str]:
        """Command lines of what is on the nodes beside the daemons `grace` seconds from now at the latest; it is killed."""
        return self.sweep(grace=grace)

    def restart(self, node: int) -> None:
        """Ends the daemon of a node (the head's is slurmctld, another's slurmd) as a service manager would, and starts it anew. Jobs go on."""
        name = self.names[node]
        program, file = ("slurmctld", "slurmctld.pid") if node == self.head else ("slurmd", f"slurmd-{name}.pid")
        ended = self.execute(node, ["sh", "-c", _END, (self._slurm / file).read_text().strip()], sweep=False)
        if ended.returncode != 0:
            raise LabError(f"{program} does not end on {name}: {ended.stderr.strip()}\n{self.logs()}")
        self._daemon(node, program)

    def _start_slurm(self) -> None:
        etc = configuration.write(self.directory, self.names, self._settings, self._plugstack)
        self._slurm = etc.parent
        key = self._slurm / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        for node, name in enumerate(self.names):
            self.execute(node, ["sh", "-c", _PREPARE, etc, key], sweep=False).check()
            if node != self.head:
                (self._slurm / f"spool-{name}").mkdir()
        self._daemon(self.head, "slurmctld")
        for node in range(self.head):
            self._daemon(node, "slurmd")
        self._wait_until_idle()
        self._request("spare")

    def _daemon(self, node: int, program: str) -> None:
        """Starts one, which goes into the background by itself when it is ready. Once more where it does not: on a busy machine the one
        before may not have let go of its port yet."""
        for _ in range(_STARTS):
            started = self.execute(node, [program], sweep=False)
            if started.returncode == 0:
                return
            time.sleep(1)
        raise LabError(f"{program} does not start on {self.names[node]}: {started.stderr.strip()}\n{self.logs()}")

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        states: list[str] = []
        while time.monotonic() < deadline:
            asked = self.execute(self.head, ["sinfo", "-h", "-p", "open", "-N", "-o", "%T"], sweep=False)
            states = asked.stdout.split()
            if len(states) == self.head and set(states) == {"idle"}:
                return
            time.sleep(0.1)
        raise LabError(f"Slurm's nodes are not ready: {' '.join(states) or asked.stderr.strip()}\n{self.logs()}")

    def logs(self) -> str:
        """The ends of the daemons' logs."""
        files = sorted(self._slurm.glob("*.log"))
        return "\n".join(f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-20:]) for file in files)


def variables_for(mpi: str) -> dict[str, str]:
    """Variables for a command on the head: PATH with mpisec and the programs of `mpi`, and what this MPI needs in the lab."""
    implementation = find_mpi(mpi)
    path = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    for program in (implementation.mpiexec, str(places.find_mpisec())):
        if "/" in program:
            path.insert(0, str(Path(program).parent))
    variables = implementation.environment | implementation.mpi4py | {"PATH": ":".join(path)}
    if implementation.family == "openmpi":
        variables |= {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "eth0", "OMPI_MCA_btl": _TRANSPORTS[implementation.launcher]}
    if implementation.requirement.startswith("openmpi"):
        variables["OPAL_PREFIX"] = str(implementation.venv)  # its mpiexec would say so; srun does not
    return variables


def require_packages() -> None:
    """Raises LabError with the command that installs what is missing."""
    missing = [program for program in _PROGRAMS if not shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")]
    if missing:
        raise LabError(f"Slurm is not installed here ({', '.join(missing)} missing): `apt-get install --no-install-recommends {PACKAGES}`")


def shell_line(words: Words) -> str:
    """`words` as one line for a shell."""
    return shlex.join(map(str, words))
