"""Latency of a collective per size and algorithm, plain and sealed interleaved (bench/collective.c), results verified.

Each algorithm has a job of its own, in which plain and sealed calls take turns: the ratio is the median over pairs of blocks; low and
high bound the middle half.
"""

import json
from pathlib import Path

from mpisec_bench.conditions import add_common_arguments, byte_counts, conditions, heading, rank_environment
from mpisec_lab.build import compile_mpi
from mpisec_lab.cluster import Cluster

COLLECTIVES = ("barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reduce_scatter", "scan",
               "exscan", "neighbor_allgather", "neighbor_alltoall")
_SOURCES = Path(__file__).resolve().parent.parent
_SIZES = "1,16,256,1024,4096,16384,65536,262144,1048576"


def adder(collective):
    """The function that adds the options of `mpisec bench COLLECTIVE`."""

    def add_arguments(parser):
        add_common_arguments(parser)
        parser.add_argument("--nodes", type=int, default=2, help="lab nodes (2)")
        parser.add_argument("--ranks", type=int, default=4, help="ranks, spread over the nodes in blocks (4)")
        parser.add_argument("--sizes", type=byte_counts, default="1" if collective == "barrier" else _SIZES,
                            help="bytes of one rank's block, or of the vector; by commas")
        parser.add_argument("--rounds", type=int, default=21, help="pairs of blocks per size (21)")
        parser.add_argument("--algorithms", default="auto", help="by commas; auto: the one that the selection takes")
        parser.set_defaults(collective=collective)

    return add_arguments


def measure(arguments):
    """Runs the benchmark; returns {"conditions": …, "collective": …, "rows": [one dict per algorithm and size]}."""
    program = compile_mpi(_SOURCES / "collective.c", arguments.mpi, flags=["-O2", "-ldl"])
    rows = []
    with Cluster(nodes=arguments.nodes, pin=not arguments.no_pin) as cluster:
        for algorithm in arguments.algorithms.split(","):
            environment = rank_environment(arguments) | {f"MPISEC_{arguments.collective.upper()}": algorithm}
            job = cluster.run(
                [program, arguments.collective, "--sizes", arguments.sizes, "--rounds", arguments.rounds],
                ranks=arguments.ranks, mpi=arguments.mpi, rate=arguments.rate, env=environment, timeout=3600,
            ).check()
            rows += [{"algorithm": algorithm} | json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]
    return {"conditions": conditions(arguments, arguments.nodes, arguments.ranks), "collective": arguments.collective, "rows": rows}


def table(result):
    """The result as text."""
    lines = [f"{result['collective']}: {heading(result)}",
             f"{'algorithm':<20} {'bytes':>9} {'plain us':>11} {'sealed us':>11} {'ratio':>7} {'middle half':>15} {'with barrier':>13}"]
    for row in result["rows"]:
        lines.append(
            f"{row['algorithm']:<20} {row['bytes']:>9} {row['plain_us']:>11.2f} {row['sealed_us']:>11.2f} {row['ratio']:>7.3f} "
            f"{row['ratio_low']:>7.3f}-{row['ratio_high']:.3f} {row['ratio_with_barrier']:>12.3f}"
        )
    return "\n".join(lines)
