"""What MPI_Init and MPI_Finalize cost with MPIsec: whole jobs of an empty program, plain and sealed by turns."""

import statistics
import time

from mpisec_bench.conditions import add_common_arguments, conditions, heading, rank_environment
from mpisec_lab.build import compile_mpi
from mpisec_lab.cluster import Cluster

_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
int main(int argc, char** argv) {
    double start = now(), mine, longest;
    MPI_Init(&argc, &argv);
    mine = now() - start;
    MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("init_ms %f\n", longest);
    MPI_Finalize();
    return 0;
}
"""


def add_arguments(parser):
    """Adds the options of `mpisec bench startup`."""
    add_common_arguments(parser)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=7, help="jobs of each kind (7)")


def measure(arguments):
    """Returns medians in milliseconds of the slowest rank's MPI_Init and of whole jobs, plain and sealed."""
    program = compile_mpi(_PROGRAM, arguments.mpi, flags=["-O2"], name="startup")
    init, whole = {False: [], True: []}, {False: [], True: []}
    with Cluster(nodes=arguments.nodes, pin=not arguments.no_pin) as cluster:
        for round_number in range(arguments.rounds + 1):
            for plain in (True, False):
                start = time.monotonic()
                job = cluster.run([program], ranks=arguments.ranks, mpi=arguments.mpi, plain=plain, env=rank_environment(arguments)).check()
                if round_number == 0:
                    continue  # warm-up: calibration, page cache
                whole[plain].append((time.monotonic() - start) * 1e3)
                init[plain].append(float(job.stdout.split("init_ms", 1)[1].split()[0]))
    rows = {
        name: {"plain_ms": statistics.median(times[True]), "sealed_ms": statistics.median(times[False])}
        for name, times in (("MPI_Init", init), ("whole job", whole))
    }
    return {"conditions": conditions(arguments, arguments.nodes, arguments.ranks), "rows": rows, "rounds": arguments.rounds}


def table(result):
    """The result as text."""
    lines = [heading(result)]
    for name, row in result["rows"].items():
        difference = row["sealed_ms"] - row["plain_ms"]
        lines.append(f"{name:>10}: plain {row['plain_ms']:.0f} ms, sealed {row['sealed_ms']:.0f} ms, difference {difference:+.0f} ms")
    return "\n".join(lines)
