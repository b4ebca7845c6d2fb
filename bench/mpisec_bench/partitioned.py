"""Partitioned messages beside the library's own, and beside as many MPI_Isend (bench/partitioned.c)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import byte_counts, chosen
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "partitioned.c"
# What the program calls 0, 1, 2, and how its rows are called.
_AGAINST = {"partitioned": "partitioned / plain partitioned", "isend": "partitioned / plain Isend", "sealed-isend": "partitioned / sealed Isend"}
PLAIN_INSIDE = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench partitioned`."""
    parser.add_argument("--sizes", type=byte_counts, default="65536", help="bytes of a partition, by commas (64K)")
    parser.add_argument("--partitions", type=count, default=16, help="of a message (16)")
    parser.add_argument("--against", default=",".join(_AGAINST),
                        help=f"what sealed partitions are compared with, by commas: of {', '.join(_AGAINST)} (all)")
    parser.add_argument("--blocks", type=count, default=7, help="pairs of blocks per size and job (7)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return 2, 2


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"Partitioned messages, {arguments.partitions} partitions"


def cases(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """(what it is compared with, bytes)."""
    against = chosen("--against", arguments.against, _AGAINST)
    return [(name, int(size)) for name in against for size in arguments.sizes.split(",")]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[tuple[str, int]], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each comparison; yields their rows, whose times are of a message."""
    program = jobs.compile(_SOURCE)
    for against in dict.fromkeys(against for against, _ in cases_):
        sizes = ",".join(str(size) for of, size in cases_ if of == against)
        options = ["--sizes", sizes, "--window", arguments.partitions, "--blocks", arguments.blocks, "--against", list(_AGAINST).index(against),
                   "--ordinary", int(not scheme.times_plain)]
        said = jobs.run([program, *options], 2, 2, scheme, environment)
        about = {"what": _AGAINST[against], "partitions": arguments.partitions}
        yield [about | {"case": (against, row["bytes"])} | row for row in rows_of(said)]
