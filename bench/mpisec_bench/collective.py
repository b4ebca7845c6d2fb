"""Latency of a collective per size and algorithm, results verified (bench/collective.c)."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import byte_counts
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "collective.c"
_SIZES = "1,16,256,1024,4096,16384,65536,262144,1048576"
_WITH_COUNTS = ("gather", "scatter", "allgather", "alltoall")  # that MPI has in a variant with a count for each rank
PLAIN_INSIDE = True


def adder(collective: str) -> Callable[[argparse.ArgumentParser], None]:
    """The function that adds the options of `mpisec bench COLLECTIVE`."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--nodes", type=count, default=2, help="nodes (2)")
        parser.add_argument("--ranks", type=count, default=4, help="ranks, spread over the nodes in blocks (4)")
        parser.add_argument("--sizes", type=byte_counts, default="1" if collective == "barrier" else _SIZES,
                            help="bytes of one rank's block, or of the vector; by commas")
        parser.add_argument("--blocks", type=count, default=5, help="pairs of blocks per size and job (5)")
        parser.add_argument("--algorithms", default="auto", help="by commas; auto: the one that the selection takes")
        parser.set_defaults(collective=collective, counts=False)
        if collective in _WITH_COUNTS:
            parser.add_argument("--counts", action="store_true",
                                help=f"call MPI_{collective.capitalize()}v, where a rank knows the sizes of its own blocks only; here they are equal")

    return add_arguments


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks)."""
    return arguments.nodes, arguments.ranks


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    return f"{_call(arguments)}, {arguments.nodes} nodes × {arguments.ranks // arguments.nodes}"


def _call(arguments: argparse.Namespace) -> str:
    """alltoall, or alltoallv with --counts: what bench/collective.c calls it."""
    return f"{arguments.collective}{'v' if arguments.counts else ''}"


def cases(arguments: argparse.Namespace) -> list[tuple[str, int]]:
    """(algorithm, bytes)."""
    return [(algorithm, int(size)) for algorithm in arguments.algorithms.split(",") for size in arguments.sizes.split(",")]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[tuple[str, int]], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each algorithm of ours, one where MPI chooses itself; yields their rows."""
    program = jobs.compile(_SOURCE)
    for algorithm in dict.fromkeys(algorithm for algorithm, _ in cases_):
        if not scheme.sealed and algorithm != "auto":
            yield []
            continue
        sizes = ",".join(str(size) for of, size in cases_ if of == algorithm)
        options = [_call(arguments), "--sizes", sizes, "--blocks", arguments.blocks, "--ordinary", int(not scheme.times_plain)]
        said = jobs.run([program, *options], *shape(arguments), scheme, environment | {f"MPISEC_{arguments.collective.upper()}": algorithm})
        about = {"what": _call(arguments), "algorithm": algorithm}
        yield [about | {"case": (algorithm, row["bytes"])} | row for row in rows_of(said)]
