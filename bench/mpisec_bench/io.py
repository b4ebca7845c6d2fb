"""Collective access to a file (bench/io.c)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import byte_counts, chosen
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "io.c"
_OPERATIONS = ("write", "read", "write-interleaved", "read-interleaved")
PLAIN_INSIDE = True  # its jobs under MPIsec time plain MPI as well, alternately


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench io`."""
    parser.add_argument("--sizes", type=byte_counts, default="67108864", help="bytes of the file, by commas (64M)")
    parser.add_argument("--operations", default=",".join(_OPERATIONS), help=f"by commas: of {', '.join(_OPERATIONS)} (all)")
    parser.add_argument("--nodes", type=count, default=2, help="(2)")
    parser.add_argument("--ranks", type=count, default=4, help="(4)")
    parser.add_argument("--blocks", type=count, default=11, help="pairs of blocks per size and job (11)")
    parser.add_argument("--directory", default="/tmp",
                        help="below which the file is, in a new directory: all nodes must see it, and a tmpfs keeps disks out of it (/tmp)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"Collective access to a file, {arguments.ranks} ranks on {arguments.nodes} nodes"


def cases(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """(operation, bytes)."""
    operations = chosen("--operations", arguments.operations, _OPERATIONS)
    return [(name, int(size)) for name in operations for size in arguments.sizes.split(",")]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[tuple[str, int]], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each operation; yields their rows, whose times are of an access of all ranks."""
    nodes, ranks = shape(arguments)
    program = jobs.compile(_SOURCE)
    for operation in dict.fromkeys(name for name, _ in cases_):
        sizes = [size for name, size in cases_ if name == operation]
        options = ["--operation", operation, "--sizes", ",".join(map(str, sizes)), "--blocks", arguments.blocks, "--ordinary", int(not scheme.times_plain)]
        said = jobs.run([program, *options], nodes, ranks, scheme, environment | {"BENCH_IO_DIRECTORY": arguments.directory})
        yield [{"what": operation, "case": (operation, size)} | row for size, row in zip(sizes, rows_of(said), strict=True)]
