"""What MPI_Init costs, and whole jobs of a program that only starts and ends (bench/startup.c)."""

import time
from pathlib import Path

from mpisec_bench.rounds import rows_of

_SOURCE = Path(__file__).resolve().parent.parent / "startup.c"
PLAIN_INSIDE = False


def add_arguments(parser):
    """Adds the options of `mpisec bench startup`."""
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=12)


def shape(arguments):
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments):
    """What it measures."""
    return f"Start of a job, {arguments.nodes} nodes × {arguments.ranks // arguments.nodes}"


def cases(_arguments):
    """One."""
    return ["start"]


def run(jobs, arguments, scheme, _cases, environment):
    """A job; yields the slowest rank's MPI_Init and the whole as seen from outside."""
    program = jobs.compile(_SOURCE)
    start = time.monotonic()
    said = jobs.run([program], *shape(arguments), scheme, environment)
    whole = {"what": "whole job", "time_us": (time.monotonic() - start) * 1e6}
    yield [{"case": "start"} | row for row in (*rows_of(said), whole)]
