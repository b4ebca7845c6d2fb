"""Measures every algorithm of the collectives, and ways to cut messages, and has `mpisec tune --times` make a selection table of the times.

A job runs sealed calls of one algorithm, each after a barrier (bench/collective.c). The algorithms of a collective take turns with
their jobs, so that all of them meet the machine's phases; of an algorithm's jobs the median counts.
"""

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from mpisec_bench.jobs import Jobs, LabJobs, LaunchedJobs
from mpisec_bench.result import Row, require_place
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import MPISEC
from mpisec_lab import places
from mpisec_lab.errors import LabError

_SOURCES = Path(__file__).resolve().parent.parent
_TURNS = 3  # jobs of each algorithm
_TURNS_OF_MESSAGES = 5  # pairs of jobs of each way to cut them
# Whatever the environment says: what a new table is compared with.
_AUTOMATIC = {"MPISEC_TUNING": "", "MPISEC_PIPELINE": "auto", "MPISEC_SEGMENT": "auto", "MPISEC_PIPELINE_THRESHOLD": "auto"}
_WINDOW = 16  # messages
_LARGEST_IN_WINDOW = 4 << 20  # bytes


class Messages(TypedDict):
    """Ways to cut messages between two ranks: every threshold with every segment."""

    thresholds: list[int]  # bytes; 0: what MPIsec takes by itself
    segments: list[int]  # bytes; 0: likewise; -1: what does not travel with the header is one
    sizes: list[int]  # bytes of a message


class Task(TypedDict):
    """What to measure: the options of `mpisec tune` (src/cli/tune.cpp), which checks them and hands them on."""

    trials: dict[str, list[str]]  # the algorithms of each collective
    messages: Messages | None
    nodes: list[int]
    ranks_per_node: list[int]
    most_ranks: int
    sizes: list[int]
    launch: str  # empty: the lab's nodes
    mpicc: str
    mpi: str
    keep_times: str  # a file, or empty
    output: str  # a file; empty: standard output
    collectives: list[str]  # as --collective named them; empty: all


class Time(TypedDict):
    """A row of what `mpisec tune --times` reads."""

    collective: str
    algorithm: str
    nodes: int
    ranks_per_node: int
    bytes: int
    seconds: float


class MessageRatio(TypedDict):
    """The same of messages: one way, or in a window."""

    threshold: int
    segment: int
    bytes: int
    ratio: float  # to what they take without a table


def _jobs(task: Task) -> Jobs:
    return LaunchedJobs({"": task["launch"]}, task["mpicc"]) if task["launch"] else LabJobs(task["mpi"])


def _shapes(task: Task) -> list[tuple[int, int]]:
    """(nodes, ranks on each) of the jobs of collectives."""
    if not task["trials"]:
        return []
    return [(n, each) for each in task["ranks_per_node"] for n in task["nodes"] if n * each <= task["most_ranks"] or n == task["nodes"][0]]


def require_nodes(task: Task, jobs: Jobs) -> None:
    """Raises LabError when a launcher of the user's does not put ranks on as many nodes as it is told to, before anything is measured."""
    if task["launch"]:
        for nodes, each in dict.fromkeys([*_shapes(task), *([(2, 1)] if task["messages"] else [])]):
            jobs.conditions(nodes, nodes * each, [MPISEC])


def measure(task: Task, jobs: Jobs, times: list[Time]) -> None:
    """Runs the jobs of collectives; adds to `times` what all algorithms of a collective took on a cluster, as soon as it is known."""
    shapes = _shapes(task)
    total, done = len(shapes) * sum(map(len, task["trials"].values())) * _TURNS, 0
    try:
        program = jobs.compile(_SOURCES / "collective.c")
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
        print(file=sys.stderr)


def measure_messages(messages: Messages, jobs: Jobs) -> list[MessageRatio]:
    """Runs the jobs of messages: a rank on each of two nodes, one message at a time and windows of them. Beside each job with a way
    to cut them runs one without, so that a machine that changes its speed changes both."""
    ways = [(threshold, segment) for threshold in messages["thresholds"] for segment in messages["segments"] if threshold or segment]
    found: dict[tuple[str, int, int, int], list[float]] = {}
    total, done = len(ways) * 2 * _TURNS_OF_MESSAGES, 0
    try:
        patterns: dict[str, tuple[list[Any], list[int]]] = {
            "one way": ([jobs.compile(_SOURCES / "pingpong.c")], messages["sizes"]),
            "windows": ([jobs.compile(_SOURCES / "mbw.c"), "--window", _WINDOW], [size for size in messages["sizes"] if size <= _LARGEST_IN_WINDOW]),
        }
        for threshold, segment in ways * _TURNS_OF_MESSAGES:
            for pattern, (program, sizes) in patterns.items():
                way = f"threshold {threshold or 'auto'}, segments {_shown(segment)}"
                print(f"\r{done}/{total}  messages, {pattern}: {way:<40}", end="", file=sys.stderr, flush=True)
                words = [*program, "--ordinary", 1, "--sizes", ",".join(map(str, sizes)), "--blocks", 7, "--block-us", 5000]
                sides = {"without": _AUTOMATIC, "cut": _AUTOMATIC | _settings(threshold, segment)}
                order = sorted(sides, reverse=done // (2 * len(ways)) % 2 == 0)  # by turns
                said = {side: rows_of(jobs.run(words, 2, 2, MPISEC, sides[side])) for side in order}
                for one, other in zip(said["without"], said["cut"], strict=True):
                    found.setdefault((pattern, threshold, segment, one["bytes"]), []).append(other["time_us"] / one["time_us"])
                done += 1
    finally:
        print(file=sys.stderr)
    return [{"threshold": threshold, "segment": segment, "bytes": size, "ratio": float(statistics.median(ratios))}
            for (_, threshold, segment, size), ratios in found.items()]


def _settings(threshold: int, segment: int) -> dict[str, str]:
    """The environment for a way to cut messages."""
    settings = {"MPISEC_PIPELINE_THRESHOLD": str(threshold)} if threshold else {}
    if segment < 0:
        return settings | {"MPISEC_PIPELINE": "off"}
    return settings | ({"MPISEC_SEGMENT": str(segment)} if segment else {})


def _shown(segment: int) -> str:
    return "whole" if segment < 0 else str(segment or "auto")


def _median(rows: Sequence[Row]) -> float:
    """The seconds of the rows of one size."""
    return float(statistics.median(row["time_with_barrier_us"] for row in rows)) * 1e-6


def _command(task: Task) -> str:
    """What makes the table again; the table begins with it."""
    words = ["--launch", task["launch"], "--mpicc", task["mpicc"]] if task["launch"] else ["--mpi", task["mpi"]]
    for option, values in (("--nodes", task["nodes"]), ("--ranks-per-node", task["ranks_per_node"]), ("--most-ranks", [task["most_ranks"]]),
                           ("--size", task["sizes"]), ("--collective", task["collectives"])):
        words += [option, ",".join(map(str, values))] if values else []
    return shlex.join(["mpisec", "tune", *words])


def measure_all(task: Task, file: Path) -> None:
    """Leaves in the file what was measured, even when a job fails or the user has seen enough."""
    measured: dict[str, Any] = {"command": _command(task), "times": [], "messages": []}
    jobs = _jobs(task)
    try:
        require_nodes(task, jobs)
        if task["trials"]:
            measure(task, jobs, measured["times"])
        if task["messages"]:
            measured["messages"] = measure_messages(task["messages"], jobs)
    except (LabError, OSError, KeyboardInterrupt) as error:
        if not measured["times"] or not task["keep_times"]:
            raise
        raise LabError(f"{str(error) or 'stopped'}; no table was written, but what was measured is in {file}: mpisec tune --times makes one of it") from error
    finally:
        jobs.close()
        if measured["times"] or measured["messages"]:
            file.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    task: Task = json.loads(sys.argv[1])
    for name in (task["keep_times"], task["output"]):
        if name:
            require_place(name)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(task["keep_times"] or Path(scratch) / "times.json")
        measure_all(task, file)
        output = ["--output", task["output"]] if task["output"] else []
        sys.exit(subprocess.run([places.find_mpisec(), "tune", "--times", file, *output], check=False).returncode)


if __name__ == "__main__":
    try:
        main()
    except (LabError, OSError, KeyboardInterrupt) as error:
        sys.exit(f"mpisec tune: {error or 'stopped; no table was written'}")
