"""What MPI_Init costs, and whole jobs of a program that only starts and ends (bench/startup.c)."""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme

_SOURCE = Path(__file__).resolve().parent.parent / "startup.c"
PLAIN_INSIDE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench startup`."""
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=12)


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"Start of a job, {arguments.nodes} nodes × {arguments.ranks // arguments.nodes}"


def cases(_arguments: argparse.Namespace) -> list[str]:
    """One."""
    return ["start"]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, _cases: Sequence[str], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job; yields the slowest rank's MPI_Init and the whole as seen from outside."""
    program = jobs.compile(_SOURCE)
    start = time.monotonic()
    said = jobs.run([program], *shape(arguments), scheme, environment)
    whole = {"what": "whole job", "time_us": (time.monotonic() - start) * 1e6}
    yield [{"case": "start"} | row for row in (*rows_of(said), whole)]
