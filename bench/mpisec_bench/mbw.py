"""Bandwidth and message rate of one or several pairs of ranks, windows of messages in flight (bench/mbw.c)."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_bench.conditions import byte_counts, counts
from mpisec_bench.jobs import Jobs
from mpisec_bench.result import Row
from mpisec_bench.rounds import rows_of
from mpisec_bench.schemes import Scheme
from mpisec_lab.options import count

_SOURCE = Path(__file__).resolve().parent.parent / "mbw.c"
PLAIN_INSIDE = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench mbw`."""
    parser.add_argument("--pairs", type=counts, default=(1, 2), help="numbers of pairs, by commas (1,2)")
    parser.add_argument("--sizes", type=byte_counts, default="1,16384,2097152", help="bytes of a message, by commas (1,16K,2M)")
    parser.add_argument("--window", type=count, default=64, help="messages in flight (64)")
    parser.add_argument("--buffers", choices=("single", "multiple"), default="single",
                        help="what messages in flight are sent from and received in: one buffer, as OSU's test does, or one each (single)")
    parser.add_argument("--ways", choices=("one", "both"), default="one",
                        help="whether the first rank of a pair sends, or both at the same time, as OSU's bidirectional test does (one)")
    parser.add_argument("--blocks", type=count, default=7, help="pairs of blocks per size and job (7)")


def shape(arguments: argparse.Namespace) -> tuple[int, int]:
    """(nodes, ranks): of the largest number of pairs."""
    return 2, 2 * max(arguments.pairs)


def title(arguments: argparse.Namespace) -> str:
    """What it measures."""
    each = ", a buffer each" if arguments.buffers == "multiple" else ""
    both = " both ways" if arguments.ways == "both" else ""
    pairs = " and ".join(map(str, arguments.pairs)) + (" pair" if max(arguments.pairs) == 1 else " pairs")
    return f"Bandwidth of {pairs}{both}, windows of {arguments.window}{each}"


def cases(arguments: argparse.Namespace) -> list[tuple[int, int]]:
    """(pairs, bytes)."""
    return [(pairs, int(size)) for pairs in arguments.pairs for size in arguments.sizes.split(",")]


def run(jobs: Jobs, arguments: argparse.Namespace, scheme: Scheme, cases_: Sequence[tuple[int, int]], environment: dict[str, str]) -> Iterator[list[Row]]:
    """A job for each number of pairs; yields their rows, whose times are of a window."""
    program = jobs.compile(_SOURCE)
    for pairs in dict.fromkeys(pairs for pairs, _ in cases_):
        sizes = ",".join(str(size) for of, size in cases_ if of == pairs)
        options = ["--sizes", sizes, "--window", arguments.window, "--blocks", arguments.blocks,
                   "--ordinary", int(not scheme.times_plain), "--multiple-buffers", int(arguments.buffers == "multiple"),
                   "--both-ways", int(arguments.ways == "both")]
        said = jobs.run([program, *options], 2, 2 * pairs, scheme, environment)
        about = {"what": "mbw", "pairs": pairs, "window": arguments.window, "ways": 2 if arguments.ways == "both" else 1}
        yield [about | {"case": (pairs, row["bytes"])} | row for row in rows_of(said)]
