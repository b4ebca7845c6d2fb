"""What it takes to start: MPI_Init, a session, a spawned world; and whole jobs of a program that only starts and ends (bench/startup.c)."""

import argparse
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import chosen
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "startup.c"
_WAYS = ("init", "session", "spawn")
PLAIN_INSIDE = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench startup`."""
    parser.add_argument("--nodes", type=count, default=4)
    parser.add_argument("--ranks", type=count, default=12)
    parser.add_argument("--by", default="init", help=f"by commas: of {', '.join(_WAYS)} (init)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"Start of a job, {arguments.nodes} nodes × {arguments.ranks // arguments.nodes}"


def cases(arguments: argparse.Namespace) -> list[str]:
    """How it starts."""
    return list(chosen("--by", arguments.by, _WAYS))


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[str], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each way; yields the slowest rank's times, of `init` the whole as seen from outside too."""
    program = jobs.compile(_SOURCE)
    for way in cases_:
        start = time.monotonic()
        rows = rows_of(jobs.run([program, way], *shape(arguments), scheme, environment))
        if way == "init":
            rows.append({"what": "whole job", "time_us": (time.monotonic() - start) * 1e6})
        yield [{"case": way} | row for row in rows]
