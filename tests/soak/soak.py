#!/usr/bin/env python3
"""soak.py --seconds N [--mpi mpich-5,openmpi-5] …: random traffic (soak.c), sealed, on nodes of the lab whose links flap and whose CPUs others
take, for a given time; with --slurm started by srun on nodes whose Slurm daemons end and start again. Judges: no wrong byte, no hang, memory of
every rank flat. Prints a summary, and writes it as JSON with -o. As root.

    .deps/test-venv/bin/python tests/soak/soak.py --seconds 3600 --nodes 2 --ranks 4 -o soak.json
"""

import argparse
import itertools
import json
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from mpisec_lab import build, places
from mpisec_lab.cluster import Cluster, Result
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import find_mpi
from mpisec_lab.slurm import SlurmCluster

WARM_UP = 1 / 3  # of the time: caches of the MPI library and of the allocator fill
_BUSY = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"  # a second or so of one CPU


@dataclass
class Summary:
    """What became of one job."""

    mpi: str
    launcher: str  # the MPI's own, or srun
    nodes: int
    ranks: int
    seconds: float
    seed: int
    rounds: int = 0
    flaps: int = 0
    pressures: int = 0
    restarts: int = 0  # of Slurm's daemons
    growth: list[float] = field(default_factory=list)  # by rank: per cent from the second third of the time to the last
    resident: list[int] = field(default_factory=list)  # by rank: KiB at the end
    longest_silence: float = 0  # seconds
    faults: list[str] = field(default_factory=list)


class Trouble:
    """Makes trouble in a thread until stop(): takes links down for up to a second and a half, takes CPU time on the nodes, restarts Slurm's daemons."""

    def __init__(self, cluster: Cluster, summary: Summary, options: argparse.Namespace) -> None:
        self._cluster, self._summary, self._options = cluster, summary, options
        self._random = random.Random(summary.seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        kinds = [self._flap]
        if self._options.pressure:
            kinds.append(self._take_cpu)
        if isinstance(self._cluster, SlurmCluster):
            kinds.append(self._restart)
        try:
            while not self._stop.wait(self._random.expovariate(1 / self._options.every)):
                self._random.choice(kinds)()
        except LabError as error:
            self._summary.faults.append(str(error))

    def _take_cpu(self) -> None:
        self._cluster.popen(self._random.randrange(len(self._cluster.names)), ["sh", "-c", _BUSY])
        self._summary.pressures += 1

    def _restart(self) -> None:
        self._cluster.restart(self._random.randrange(len(self._cluster.names)))
        self._summary.restarts += 1

    def _flap(self) -> None:
        """The bridge's end of one node's wire: what is in flight is lost, and TCP sends it again."""
        node = self._random.randrange(len(self._cluster.names))
        for state, pause in (("down", self._random.uniform(0.05, 1.5)), ("up", 0.0)):
            self._cluster.popen_on_bridge(["ip", "link", "set", f"p{node}", state]).wait()
            time.sleep(pause)
        self._summary.flaps += 1


def growth(file: Path, seconds: float) -> tuple[float, int]:
    """(per cent that the memory has grown after the warm-up, KiB at the end), from medians."""
    samples = [(float(at), int(kib)) for at, kib in (line.split() for line in file.read_text().splitlines())]
    middle = [kib for at, kib in samples if seconds * WARM_UP < at <= seconds * (1 + WARM_UP) / 2]
    late = [kib for at, kib in samples if at > seconds * (1 + WARM_UP) / 2]
    if not middle or not late:
        return float("inf"), 0
    before, after = statistics.median(middle), statistics.median(late)
    return 100 * (after - before) / before, int(after)


def silence(file: Path) -> float:
    """The longest time between two samples of a rank, which come about once a second."""
    times = [float(line.split()[0]) for line in file.read_text().splitlines()]
    return max((after - before for before, after in itertools.pairwise(times)), default=float("inf"))


def judge(summary: Summary, result: Result, directory: Path, options: argparse.Namespace) -> None:
    rounds = [line for line in result.stdout.splitlines() if line.startswith("round ")]
    summary.rounds = int(rounds[-1].split()[1]) if rounds else 0
    if result.timed_out:
        summary.faults.append(f"hang: {rounds[-1:]} was the last sign of life\n{result.stderr[-4000:]}")
    elif result.returncode != 0 or "soak ended" not in result.stdout:
        summary.faults.append(f"the job ended with status {result.returncode}\n{result.stdout[-1000:]}\n{result.stderr[-4000:]}")
    for rank in range(options.ranks):
        file = directory / f"memory.{rank}"
        if not file.exists():
            continue
        grown, resident = growth(file, summary.seconds)
        summary.growth.append(round(grown, 2))
        summary.resident.append(resident)
        summary.longest_silence = max(summary.longest_silence, silence(file))
        if grown > options.growth:
            summary.faults.append(f"memory of rank {rank} has grown by {grown:.2f} %")


def run(cluster: Cluster, command: list[object], mpi: str, timeout: float, options: argparse.Namespace) -> Result:
    """Runs the job by the MPI's own launcher, or by srun where there is Slurm."""
    if not isinstance(cluster, SlurmCluster):
        return cluster.run(command, ranks=options.ranks, mpi=mpi, plain=options.plain, timeout=timeout)
    pmi = "pmix" if find_mpi(mpi).family == "openmpi" else "pmi2"
    srun = ["srun", f"-N{options.nodes}", f"-n{options.ranks}", "--overcommit", f"--mpi={pmi}"]
    sealed = [] if options.plain else [places.find_mpisec(), "exec"]
    return cluster.submit([*srun, *sealed, *command], mpi=mpi, env={"MPISEC_KEY_FILE": cluster.key()}, timeout=timeout)


def soak(mpi: str, seconds: float, options: argparse.Namespace) -> Summary:
    summary = Summary(mpi, "srun" if options.slurm else "own", options.nodes, options.ranks, seconds, options.seed)
    app = build.compile_mpi(Path(__file__).with_name("soak.c"), mpi, flags=["-std=gnu11", "-O2"])
    directory = Path(tempfile.mkdtemp(prefix="mpisec-soak-"))
    try:
        with (SlurmCluster if options.slurm else Cluster)(options.nodes) as cluster:
            trouble = Trouble(cluster, summary, options)
            try:
                result = run(cluster, [app, seconds, options.seed, directory], mpi, seconds + options.time_limit, options)
            finally:
                trouble.stop()
        judge(summary, result, directory, options)
    finally:
        shutil.rmtree(directory)
    return summary


def show(summary: Summary) -> str:
    growth = ", ".join(f"{one:+.2f}" for one in summary.growth)
    resident = max(summary.resident, default=0) // 1024
    text = (f"{summary.mpi}: {summary.rounds} rounds in {summary.seconds:.0f} s (seed {summary.seed}), {summary.flaps} links down and up, CPU taken "
            f"{summary.pressures} times, daemons restarted {summary.restarts} times; memory {growth} % per rank ({resident} MiB at most); longest silence "
            f"{summary.longest_silence:.1f} s")
    return "\n".join([text, *(f"FAULT: {fault}" for fault in summary.faults)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="for all MPIs together")
    parser.add_argument("--mpi", default="mpich-5", help="names that `mpisec lab list` shows, with commas: one after the other")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=8, help="seconds between two troubles, on average")
    parser.add_argument("--slurm", action="store_true", help="started by srun; Slurm's daemons are restarted too")
    parser.add_argument("--no-pressure", dest="pressure", action="store_false", help="leave the CPUs to the job")
    parser.add_argument("--growth", type=float, default=1, help="per cent of memory that a rank may grow by after the first third of the time")
    parser.add_argument("--time-limit", type=float, default=120, help="seconds after the end of the time, then it is a hang")
    parser.add_argument("--plain", action="store_true", help="without MPIsec, to tell its faults from the MPI library's")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file for the summary")
    options = parser.parse_args()
    mpis = options.mpi.split(",")
    summaries = []
    for mpi in mpis:
        summaries.append(soak(mpi, options.seconds / len(mpis), options))
        print(show(summaries[-1]), flush=True)
    if options.output:
        options.output.write_text(json.dumps([asdict(one) for one in summaries], indent=1) + "\n")
    return 1 if any(one.faults for one in summaries) else 0


if __name__ == "__main__":
    sys.exit(main())
