"""Where jobs run: on network namespaces of this machine, or by a site's own launcher on its own cluster."""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import PLAIN, Scheme
from mpisec_lab import link, places
from mpisec_lab.build import compile_mpi
from mpisec_lab.cluster import Cluster
from mpisec_lab.errors import LabError
from mpisec_lab.options import words as words_of
from mpisec_lab.rate import check_rate

_NODES = Path(__file__).resolve().parent.parent / "nodes.c"
_JOB_SECONDS = 1800
_PROBE_SECONDS = 0.5


class LabJobs:
    """Jobs on lab nodes. A cluster is made when first wanted and stands until close()."""

    def __init__(self, mpi: str, *, rate: float | None = None, pin: bool = True) -> None:
        self.mpi = mpi
        self.rate = rate
        self._pin = pin
        self._clusters: dict[tuple[int, str], Cluster] = {}

    def compile(self, source: str | Path, flags: Sequence[str] = ("-O2", "-ldl")) -> Path:
        """The program (Path) of a source file."""
        return compile_mpi(Path(source), self.mpi, flags=list(flags))

    def cluster(self, nodes: int, scheme: Scheme = PLAIN) -> Cluster:
        """The cluster that a scheme's jobs run on."""
        key = (nodes, scheme.overlay)
        if key not in self._clusters:
            self._clusters[key] = Cluster(nodes=nodes, pin=self._pin, overlay=scheme.overlay).__enter__()
        return self._clusters[key]

    def run(self, words: Sequence[object], nodes: int, ranks: int, scheme: Scheme, environment: Mapping[str, str] | None = None) -> str:
        """Runs a job; returns its standard output. Raises LabError with the job's words when it fails."""
        return self.cluster(nodes, scheme).run(
            words, ranks=ranks, mpi=self.mpi, rate=self.rate, env=scheme.environment(environment),
            plain=not scheme.sealed, mpisec=scheme.program, timeout=_JOB_SECONDS
        ).check().stdout

    def conditions(self, nodes: int, _ranks: int, schemes: Sequence[Scheme]) -> dict[str, object]:
        """What the networks are, and the bits per second that one raw TCP connection reaches on each."""
        overlays: dict[str, dict[str, object]] = {}
        found: dict[str, object] = {"pinned": self._pin, "rate_bits_per_second": self.rate, "overlays": overlays}
        if self.rate:
            found["rate_of"] = "node"  # files from before labs had links say nothing: a rate was each connection's
            found["rate_burst_bytes"] = link.burst(self.rate)  # nor these, of when TCP paced itself within the link
        if nodes > 1:
            found["raw_tcp_bits_per_second"] = self._probe(nodes, PLAIN)
        for scheme in schemes:
            if scheme.overlay != "none":
                overlay = self.cluster(nodes, scheme).overlay
                about: dict[str, object] = dict(overlay.conditions) if overlay else {}
                overlays[scheme.overlay] = about | {"raw_tcp_bits_per_second": self._probe(nodes, scheme)}
        return found

    def _probe(self, nodes: int, scheme: Scheme) -> int:
        return round(check_rate(self.cluster(nodes, scheme), self.rate, _PROBE_SECONDS).measured)

    def close(self) -> None:
        """Takes the clusters down."""
        for cluster in self._clusters.values():
            cluster.close()
        self._clusters.clear()


def _launcher(template: str, **counts: int) -> list[str]:
    """The words of --launch for a job. Raises LabError for one that cannot be filled in."""
    try:
        return words_of("--launch", template.format(**counts))
    except (AttributeError, IndexError, KeyError, ValueError) as error:
        raise LabError(f"--launch {template}: {{ranks}}, {{nodes}} and {{each}} are put in, nothing else; other braces are written twice") from error


class LaunchedJobs:
    """Jobs that a site's own launcher starts.

    launch: {scheme name or "": command line} in which {ranks}, {nodes} and {each} (ranks per node) are put in; "" serves plain and
    mpisec, an overlay needs a command of its own, as one with another host file. mpicc: the compiler of the MPI that it starts.
    """

    rate = None

    def __init__(self, launch: dict[str, str], mpicc: str = "mpicc") -> None:
        self.mpi = launch[""]
        self._launch = launch
        for template in launch.values():
            _launcher(template, nodes=1, each=1, ranks=1)
        self._mpicc = words_of("--mpicc", mpicc)
        if shutil.which(self._mpicc[0]) is None:
            raise LabError(f"there is no {self._mpicc[0]} here; --mpicc names the compiler of the MPI that --launch starts")
        self._directory = Path(tempfile.mkdtemp(prefix="mpisec-bench-", dir=Path.cwd()))  # on a file system that the nodes share

    def compile(self, source: str | Path, flags: Sequence[str] = ("-O2", "-ldl")) -> Path:
        """The program (Path) of a source file, in a directory that close() removes."""
        source = Path(source)
        program = self._directory / source.stem
        wrapper = {".cpp": "mpicxx", ".f90": "mpif90"}.get(source.suffix, "mpicc")
        command = [self._mpicc[0].replace("mpicc", wrapper), *self._mpicc[1:]]
        made = subprocess.run([*command, f"-I{source.parent}", "-o", program, source, *flags], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise LabError(f"{shlex.join(command)} cannot compile {source}:\n{made.stderr}")
        return program

    def run(self, words: Sequence[object], nodes: int, ranks: int, scheme: Scheme, environment: Mapping[str, str] | None = None) -> str:
        """Runs a job; returns its standard output. Raises LabError with the job's words when it fails."""
        template = self._launch.get("" if scheme.overlay == "none" else scheme.name)
        if template is None:
            raise LabError(f"jobs over {scheme.name} need a launcher of their own: --launch {scheme.name}='mpiexec --hostfile … -n {{ranks}}'")
        settings = [f"{name}={value}" for name, value in scheme.environment(environment).items()]
        sealed = [places.find_mpisec(scheme.program), "exec"] if scheme.sealed else []
        command = [*_launcher(template, nodes=nodes, each=ranks // nodes, ranks=ranks), "env", *settings, *sealed, *words]
        try:
            job = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=_JOB_SECONDS)
        except OSError as error:
            raise LabError(f"--launch: cannot start {command[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise LabError(f"--launch: {shlex.join(map(str, command))} did not end within {_JOB_SECONDS} seconds") from error
        if job.returncode != 0:
            raise LabError(f"{shlex.join(map(str, command))} ended with status {job.returncode}:\n{job.stdout}\n{job.stderr}")
        return job.stdout

    def conditions(self, nodes: int, ranks: int, schemes: Sequence[Scheme]) -> dict[str, object]:
        """How jobs are launched; the networks are the site's and not looked at. Raises LabError when the ranks are not on so many nodes:
        within a node nothing is sealed."""
        program = self.compile(_NODES)
        for scheme in schemes:
            found = rows_of(self.run([program], nodes, ranks, scheme))[0]["nodes"]
            if found != nodes:
                raise LabError(f"--launch put {ranks} ranks on {found} node(s), not on {nodes}: give it hosts, or other --nodes")
        return {"launch": self._launch, "rate_bits_per_second": None, "overlays": {s.name: {} for s in schemes if s.overlay != "none"}}

    def close(self) -> None:
        """Removes the programs."""
        shutil.rmtree(self._directory)


Jobs = LabJobs | LaunchedJobs
