"""One-sided operations on the memory of another rank (bench/rma.c)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import byte_counts, chosen
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "rma.c"
_OPERATIONS = ("put", "get", "accumulate", "fetch_and_op", "puts")
PLAIN_INSIDE = True  # its jobs under MPIsec time plain MPI as well, alternately


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench rma`."""
    parser.add_argument("--sizes", type=byte_counts, default="8,65536", help="bytes of an operation, by commas (8,64K)")
    parser.add_argument("--operations", default=",".join(_OPERATIONS), help=f"by commas: of {', '.join(_OPERATIONS)} (all)")
    parser.add_argument("--window", type=count, default=64, help="of puts: how many before a flush (64)")
    parser.add_argument("--blocks", type=count, default=11, help="pairs of blocks per size and job (11)")
    parser.add_argument("--same-node", action="store_true", help="both ranks on one node of two (a third rank makes the window cross)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return (2, 4) if arguments.same_node else (2, 2)


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return "One-sided operations within a node" if arguments.same_node else "One-sided operations"


def cases(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """(operation, bytes); fetch_and_op is of 8 bytes alone."""
    operations = chosen("--operations", arguments.operations, _OPERATIONS)
    return [(name, size) for name in operations for size in ([8] if name == "fetch_and_op" else map(int, arguments.sizes.split(",")))]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[tuple[str, int]], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each operation; yields their rows, whose times are of an operation and its flush."""
    nodes, ranks = shape(arguments)
    program = jobs.compile(_SOURCE)
    for operation in dict.fromkeys(name for name, _ in cases_):
        sizes = [size for name, size in cases_ if name == operation]
        options = ["--operation", operation, "--sizes", ",".join(map(str, sizes)), "--window", arguments.window,
                   "--blocks", arguments.blocks, "--ordinary", int(not scheme.times_plain)]
        # On one node: rank 0 and 1 of a job whose last ranks, on the other node, only wait.
        options += ["--peer", 1] if arguments.same_node else []
        said = jobs.run([program, *options], nodes, ranks, scheme, environment)
        what = f"{arguments.window} puts + flush" if operation == "puts" else f"{operation} + flush"
        yield [{"what": what, "case": (operation, size)} | row for size, row in zip(sizes, rows_of(said), strict=True)]
