"""Measures every algorithm of the collectives and has `mpisec tune --times` make a selection table of the times.

A job runs sealed calls of one algorithm, each after a barrier (bench/collective.c). The algorithms of a collective take turns with
their jobs, so that all of them meet the machine's phases; of an algorithm's jobs the median counts.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from mpisec_bench.jobs import LabJobs, LaunchedJobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import MPISEC
from mpisec_lab import places
from mpisec_lab.errors import LabError

_SOURCE = Path(__file__).resolve().parent.parent / "collective.c"
_TURNS = 3  # jobs of each algorithm


class Task(TypedDict):
    """What to measure: the options of `mpisec tune` (src/cli/tune.cpp), which checks them and hands them on."""

    trials: dict[str, list[str]]  # the algorithms of each collective
    nodes: list[int]
    ranks_per_node: list[int]
    most_ranks: int
    sizes: list[int]
    launch: str  # empty: the lab's nodes
    mpicc: str
    mpi: str
    keep_times: str  # a file, or empty
    output: str  # a file; empty: standard output


class Time(TypedDict):
    """A row of what `mpisec tune --times` reads."""

    collective: str
    algorithm: str
    nodes: int
    ranks_per_node: int
    bytes: int
    seconds: float


def measure(task: Task) -> list[Time]:
    """Runs the jobs."""
    shapes = [(n, each) for each in task["ranks_per_node"] for n in task["nodes"] if n * each <= task["most_ranks"] or n == task["nodes"][0]]
    jobs = LaunchedJobs({"": task["launch"]}, task["mpicc"]) if task["launch"] else LabJobs(task["mpi"])
    total, done = len(shapes) * sum(map(len, task["trials"].values())) * _TURNS, 0
    times: list[Time] = []
    try:
        program = jobs.compile(_SOURCE)
        for nodes, each in shapes:
            for collective, algorithms in task["trials"].items():
                found: dict[str, list[list[Row]]] = {algorithm: [] for algorithm in algorithms}
                for algorithm in algorithms * _TURNS:
                    print(f"\r{done}/{total}  {nodes} nodes x {each}: {collective} {algorithm:<24}", end="", file=sys.stderr, flush=True)
                    sizes = "1" if collective == "barrier" else ",".join(map(str, task["sizes"]))
                    words = [program, collective, "--ordinary", 1, "--sizes", sizes, "--blocks", 5, "--block-us", 5000]
                    said = jobs.run(words, nodes, nodes * each, MPISEC, {f"MPISEC_{collective.upper()}": algorithm})
                    found[algorithm].append(rows_of(said))
                    done += 1
                for algorithm, turns in found.items():
                    for of_size in zip(*turns, strict=True):
                        times.append({"collective": collective, "algorithm": algorithm, "nodes": nodes, "ranks_per_node": each,
                                      "bytes": of_size[0]["bytes"], "seconds": _median(of_size)})
    finally:
        jobs.close()
        print(file=sys.stderr)
    return times


def _median(rows: Sequence[Row]) -> float:
    """The seconds of the rows of one size."""
    return float(statistics.median(row["time_with_barrier_us"] for row in rows)) * 1e-6


def main() -> None:
    task: Task = json.loads(sys.argv[1])
    times = measure(task)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(task["keep_times"] or Path(scratch) / "times.json")
        file.write_text(json.dumps({"times": times}, indent=1) + "\n", encoding="utf-8")
        output = ["--output", task["output"]] if task["output"] else []
        sys.exit(subprocess.run([places.find_mpisec(), "tune", "--times", file, *output], check=False).returncode)


if __name__ == "__main__":
    try:
        main()
    except (LabError, OSError, KeyboardInterrupt) as error:
        sys.exit(f"mpisec tune: {error or 'stopped; no table was written'}")
