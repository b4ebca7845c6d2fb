"""Measures every algorithm of the collectives and has `mpisec tune --times` make a selection table of the times.

A job runs sealed calls of one algorithm, each after a barrier (bench/collective.c). The algorithms of a collective take turns with
their jobs, so that all of them meet the machine's phases; of an algorithm's jobs the median counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from mpisec_bench.conditions import byte_counts
from mpisec_bench.jobs import LabJobs, LaunchedJobs
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import MPISEC
from mpisec_lab import places
from mpisec_lab.errors import LabError

_SOURCE = Path(__file__).resolve().parent.parent / "collective.c"


def add_arguments(parser):
    """The options; `mpisec tune` gives --try, --nodes, --ranks-per-node and --sizes."""
    parser.add_argument("--try", dest="trials", action="append", required=True, metavar="COLLECTIVE=ALGORITHM,…", help="what to measure")
    parser.add_argument("--nodes", type=_numbers, required=True, help="numbers of nodes")
    parser.add_argument("--ranks-per-node", type=_numbers, required=True)
    parser.add_argument("--most-ranks", type=int, required=True)
    parser.add_argument("--sizes", type=byte_counts, required=True)
    parser.add_argument("--turns", type=int, default=3, help="jobs of each algorithm (3)")
    parser.add_argument("--launch", metavar="COMMAND", help="what starts ranks: {ranks}, {nodes} and {each} are put in; default: the lab's nodes")
    parser.add_argument("--mpicc", default="mpicc", help="compiler for the MPI that --launch starts (mpicc)")
    parser.add_argument("--mpi", default="mpich-5", help="the lab's MPI (mpich-5)")
    parser.add_argument("--keep-times", metavar="FILE", help="where the times go, as JSON")
    parser.add_argument("--output", help="the table; default: standard output")


def _numbers(text):
    return [int(item) for item in text.split(",")]


def measure(arguments):
    """Runs the jobs; returns [{"collective", "algorithm", "nodes", "ranks_per_node", "bytes", "seconds"}, …]."""
    trials = {name: algorithms.split(",") for name, _, algorithms in (trial.partition("=") for trial in arguments.trials)}
    shapes = [(n, each) for each in arguments.ranks_per_node for n in arguments.nodes if n * each <= arguments.most_ranks or n == arguments.nodes[0]]
    jobs = LaunchedJobs({"": arguments.launch}, arguments.mpicc) if arguments.launch else LabJobs(arguments.mpi)
    total, done, times = len(shapes) * sum(map(len, trials.values())) * arguments.turns, 0, []
    try:
        program = jobs.compile(_SOURCE)
        for nodes, each in shapes:
            for collective, algorithms in trials.items():
                found = {algorithm: [] for algorithm in algorithms}
                for _ in range(arguments.turns):
                    for algorithm in algorithms:
                        print(f"\r{done}/{total}  {nodes} nodes x {each}: {collective} {algorithm:<24}", end="", file=sys.stderr, flush=True)
                        sizes = "1" if collective == "barrier" else arguments.sizes
                        words = [program, collective, "--ordinary", 1, "--sizes", sizes, "--blocks", 5, "--block-us", 5000]
                        said = jobs.run(words, nodes, nodes * each, MPISEC, {f"MPISEC_{collective.upper()}": algorithm})
                        found[algorithm].append(rows_of(said))
                        done += 1
                where = {"collective": collective, "nodes": nodes, "ranks_per_node": each}
                for algorithm, turns in found.items():
                    times += [where | {"algorithm": algorithm} | _time(of_size) for of_size in zip(*turns, strict=True)]
    finally:
        jobs.close()
        print(file=sys.stderr)
    return times


def _time(rows):
    """The median of the rows of one size."""
    seconds = statistics.median(row["time_with_barrier_us"] for row in rows) * 1e-6
    return {"bytes": rows[0]["bytes"], "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(prog="mpisec tune", description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    times = measure(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(arguments.keep_times or Path(scratch) / "times.json")
        file.write_text(json.dumps({"times": times}, indent=1) + "\n", encoding="utf-8")
        output = ["--output", arguments.output] if arguments.output else []
        sys.exit(subprocess.run([places.find_mpisec(), "tune", "--times", file, *output], check=False).returncode)


if __name__ == "__main__":
    try:
        main()
    except (LabError, OSError, KeyboardInterrupt) as error:
        sys.exit(f"mpisec tune: {error or 'stopped; no table was written'}")
