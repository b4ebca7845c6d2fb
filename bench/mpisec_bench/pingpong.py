"""One-way times or windowed bandwidth between two ranks, plain and sealed interleaved, and what MPIsec itself costs per message.

The ratio is the median over pairs of blocks, plain and sealed by turns (bench/pingpong.c); low and high bound the middle half.
"""

import json
from pathlib import Path

from mpisec_bench.conditions import add_common_arguments, byte_counts, conditions, heading, rank_environment
from mpisec_lab.build import compile_mpi
from mpisec_lab.cluster import Cluster

_SOURCES = Path(__file__).resolve().parent.parent


def add_arguments(parser):
    """Adds the options of `mpisec bench pingpong`."""
    add_common_arguments(parser)
    parser.add_argument("--sizes", type=byte_counts, default="1,16,256,1024,4096,16384,65536,262144,1048576,2097152,4194304", help="bytes, by commas")
    parser.add_argument("--rounds", type=int, default=41, help="pairs of blocks per size (41)")
    parser.add_argument("--window", type=int, default=0, help="messages in flight; 0: ping-pong (0)")
    parser.add_argument("--same-node", action="store_true", help="both ranks on one node of two (a third rank makes the job cross)")
    parser.add_argument("--own-cost", action="store_true", help="also nanoseconds in MPIsec per small message, network excluded")


def measure(arguments):
    """Runs the benchmark; returns {"conditions": …, "rows": [one dict per size], "own_cost": […]}."""
    program = compile_mpi(_SOURCES / "pingpong.c", arguments.mpi, flags=["-O2", "-ldl"])
    # Ranks 0 and the last meet. On one node: rank 0 and 1 of a job whose last rank, on the other node, only waits.
    nodes, ranks = (2, 4) if arguments.same_node else (2, 2)
    options = ["--sizes", arguments.sizes, "--rounds", arguments.rounds, "--window", arguments.window]
    if arguments.same_node:
        options += ["--peer", 1]
    environment = rank_environment(arguments)
    with Cluster(nodes=nodes, pin=not arguments.no_pin) as cluster:
        job = cluster.run([program, *options], ranks=ranks, mpi=arguments.mpi, rate=arguments.rate, env=environment, timeout=3600).check()
        result = {"conditions": conditions(arguments, nodes, ranks), "rows": [json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]}
        if arguments.own_cost:
            result["own_cost"] = _own_cost(cluster, arguments, environment)
    return result


def _own_cost(cluster, arguments, environment):
    stopwatch = compile_mpi(_SOURCES / "stopwatch.c", arguments.mpi, flags=["-O2", "-shared", "-fPIC", "-ldl"], name="stopwatch.so")
    program = compile_mpi(_SOURCES / "own_cost.c", arguments.mpi, flags=["-O2", "-ldl"])
    job = cluster.run([program], ranks=2, mpi=arguments.mpi, env=environment | {"LD_PRELOAD": str(stopwatch)}, timeout=600).check()
    return [json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]


def table(result):
    """The result as text."""
    lines = [heading(result), f"{'bytes':>9} {'plain us':>11} {'sealed us':>11} {'ratio':>7} {'middle half':>15}"]
    for row in result["rows"]:
        lines.append(
            f"{row['bytes']:>9} {row['plain_us']:>11.2f} {row['sealed_us']:>11.2f} {row['ratio']:>7.3f} "
            f"{row['ratio_low']:>7.3f}-{row['ratio_high']:.3f}"
        )
    for row in result.get("own_cost", []):
        lines.append(f"MPIsec itself, {row['bytes']} bytes: {row['seal_ns']:.0f} ns to send, {row['open_ns']:.0f} ns to receive, {row['both_ns']:.0f} ns together")
    return "\n".join(lines)
