"""Where the ranks of a node share one CPU other algorithms serve a collective (docs/collectives.md)."""

import os
import re

import pytest

# An all-gather of 64 bytes on 2 nodes x 2 ranks: with hs2 every rank seals its block, with o-rd it also passes another on.
HS2, O_RD = 64, 128

BINDINGS = {  # CPUs a and b, by rank: two ranks on each node
    "a CPU for each node": (("a", "a", "b", "b"), HS2),
    "one CPU for both": (("a", "a", "a", "a"), HS2),
    "two CPUs for both": (("a,b", "a,b", "a,b", "a,b"), HS2),
    "a CPU for each rank of a node": (("a", "b", "a", "b"), O_RD),
    "two CPUs for one of them": (("a,b", "a,b", "b", "b"), O_RD),
}


@pytest.mark.parametrize("binding", BINDINGS, ids=[name.replace(" ", "-") for name in BINDINGS])
def test_an_all_gather_by_the_cpus_of_its_nodes(run, compile_mpi, tmp_path, binding):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    cpus, sealed = BINDINGS[binding]
    source = tmp_path / "gather.c"
    source.write_text("""#include <mpi.h>
int main(int argc, char** argv) {
    int rank, in[16], out[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 16; ++i) in[i] = 100 * rank + i;
    MPI_Allgather(in, 16, MPI_INT, out, 16, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < 64; ++i)
        if (out[i] != 100 * (i / 16) + i % 16) MPI_Abort(MPI_COMM_WORLD, 3);
    return MPI_Finalize();
}
""")
    a, b = sorted(os.sched_getaffinity(0))[:2]
    lists = " ".join(cpus).translate({ord("a"): str(a), ord("b"): str(b)})
    bound = f'set -- {lists} "$@"; shift $PMI_RANK; cpus=$1; shift $((4 - PMI_RANK)); exec taskset --cpu-list "$cpus" "$@"'
    result = run(["sh", "-c", bound, "sh", compile_mpi(source)], nodes=2, ranks=4, env={"MPISEC_STATS": "ranks"})
    assert result.returncode == 0, result.stdout + result.stderr
    each = [int(bytes_) for bytes_ in re.findall(r"^ +sealed in collectives +\d+ +(\d+)", result.stderr, re.MULTILINE)]
    assert each == [sealed] * 4, result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_long_wait_leaves_the_cpu_to_others(run, compile_mpi, tmp_path, mpi):
    """Where ranks outnumber CPUs one that waits long sleeps between its polls."""
    source = tmp_path / "wait.c"
    source.write_text("""#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char** argv) {
    int rank, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        sleep(1);
        MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        clock_t used = clock();
        MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("used %ld ms\\n", (long)(clock() - used) * 1000 / CLOCKS_PER_SEC);
    }
    return MPI_Finalize();
}
""")
    result = run([compile_mpi(source, mpi)], mpi=mpi, env={"MPISEC_YIELD": "on"})
    assert result.returncode == 0, result.stderr
    assert int(re.search(r"used (\d+) ms", result.stdout)[1]) < 500, result.stdout
