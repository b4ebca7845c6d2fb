"""One-way times of messages between two ranks (bench/pingpong.c)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import byte_counts
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "pingpong.c"
PLAIN_INSIDE = True  # its jobs under MPIsec time plain MPI as well, alternately


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench pingpong`."""
    parser.add_argument("--sizes", type=byte_counts, default="1,16,256,1024,4096,16384,65536,262144,1048576,2097152,4194304", help="bytes, by commas")
    parser.add_argument("--blocks", type=count, default=11, help="pairs of blocks per size and job (11)")
    parser.add_argument("--same-node", action="store_true", help="both ranks on one node of two (a third rank makes the job cross)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return (2, 4) if arguments.same_node else (2, 2)


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return "Ping-pong within a node" if arguments.same_node else "Ping-pong"


def cases(arguments: argparse.Namespace) -> list[int]:
    """Message sizes in bytes."""
    return [int(size) for size in arguments.sizes.split(",")]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[int], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job of a scheme; yields its rows."""
    nodes, ranks = shape(arguments)
    options = ["--sizes", ",".join(map(str, cases_)), "--blocks", arguments.blocks, "--ordinary", int(not scheme.times_plain)]
    # On one node: rank 0 and 1 of a job whose last rank, on the other node, only waits.
    options += ["--peer", 1] if arguments.same_node else []
    said = jobs.run([jobs.compile(_SOURCE), *options], nodes, ranks, scheme, environment)
    yield [{"what": "pingpong", "case": row["bytes"]} | row for row in rows_of(said)]
