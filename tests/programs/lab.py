"""Runs programs on a cluster, plain and sealed, and compares what the ranks tell."""

import hashlib
import itertools
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "lab"))

from mpisec_lab.build import compile_mpi  # noqa: E402
from mpisec_lab.cluster import Cluster  # noqa: E402

# Ranks outnumber cores: without this Open MPI's ranks spin while others wait for the core.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}
# Messages from here on travel in segments; small ones let short messages do so.
SEGMENTS = ({"MPISEC_PIPELINE_THRESHOLD": "64K"}, {"MPISEC_PIPELINE_THRESHOLD": "4K", "MPISEC_SEGMENT": "4K"})


def build(mpi: str) -> Path:
    """The interpreter for an MPI."""
    everything = sorted([*HERE.glob("*.[ch]"), *HERE.glob("*.inc")])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in everything)).hexdigest()[:16]
    others = [str(path) for path in everything if path.suffix == ".c" and path.name != "program.c"]
    flags = ["-std=gnu11", "-Wextra", "-Wno-missing-field-initializers", "-pthread", f'-DSOURCES="{digest}"', *others]
    intel = ["-DON_INTEL=1"] if mpi == "impi" else []  # it has MPICH's headers
    return compile_mpi(HERE / "program.c", mpi, flags=[*intel, *flags])


Lines = list[str]  # a program: a line says what to do in one step
Traces = list[list[str]]  # of a program: each rank's lines


@dataclass(frozen=True)
class Place:
    """Where programs run."""

    mpi: str
    nodes: int = 2
    ranks: int = 4
    segments: int = 0  # index into SEGMENTS
    fault: str = ""  # in sealed runs: see requests.c

    @property
    def name(self) -> str:
        return f"{self.mpi}, {self.ranks} ranks on {self.nodes} nodes"


@dataclass
class Run:
    """One job: what each rank told of each program, and how the job ended."""

    returncode: int
    said: str  # standard error and output
    traces: list[Traces]  # per program
    calls: dict[str, int] = field(default_factory=dict)

    def finished(self, i: int) -> bool:
        """Whether all ranks came to the end of program i."""
        return i < len(self.traces) and all(lines and lines[-1].startswith("0 end") and lines[-1].endswith("\n") for lines in self.traces[i])


class Lab:
    """Clusters, one per number of nodes, that all jobs share."""

    def __init__(self) -> None:
        self._clusters: dict[int, Cluster] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for cluster in self._clusters.values():
            cluster.close()

    def cluster(self, nodes: int) -> Cluster:
        if nodes not in self._clusters:
            self._clusters[nodes] = Cluster(nodes).__enter__()
        return self._clusters[nodes]

    def run(self, place: Place, programs: Sequence[Lines], *, plain: bool, time_limit: float = 30) -> Run:
        """Runs the programs (lists of lines) in one job. time_limit: seconds that a program may take."""
        directory = Path(tempfile.mkdtemp(prefix="mpisec-programs-"))
        try:
            script = directory / "script"
            script.write_text("".join(line + "\n" for line in itertools.chain(*programs)))
            env = dict(YIELD) | ({} if plain else SEGMENTS[place.segments])
            if place.fault and not plain:
                env["MPISEC_LAB_PROGRAM_FAULT"] = place.fault
            command = [str(build(place.mpi)), str(script), str(directory / "trace"), str(time_limit)]
            result = self.cluster(place.nodes).run(command, ranks=place.ranks, mpi=place.mpi, plain=plain, env=env,
                                                   timeout=time_limit + 40 + len(programs) * 3)
            said = (result.stderr + result.stdout)[-20000:]
            traces = [_programs(directory / f"trace.{rank}") for rank in range(place.ranks)]
            longest = max(map(len, traces))
            together = [[trace[i] if i < len(trace) else [] for trace in traces] for i in range(longest)]
            return Run(result.returncode, said, together, _calls(directory))
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def _programs(path: Path) -> list[list[str]]:
    """The lines of each program in a rank's trace, without the lines' numbers, which depend on where the program stands in a script."""
    programs: list[list[str]] = []
    if not path.exists():
        return programs
    for line in path.read_text(errors="replace").splitlines(keepends=True):
        if re.match(r"\d+ program ", line):
            programs.append([])
        if programs:
            programs[-1].append(line)
    return [[re.sub(r"^\d+", str(i + 1) if " end" not in line[:12] else "0", line) for i, line in enumerate(lines)] for lines in programs]


def _calls(directory: Path) -> dict[str, int]:
    """{procedure: how often all ranks together called it}."""
    calls: dict[str, int] = {}
    for path in directory.glob("trace.calls.*"):
        for line in path.read_text().splitlines():
            name, count = line.split()
            calls[name] = calls.get(name, 0) + int(count)
    return calls
