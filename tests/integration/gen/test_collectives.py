"""The sealed collectives and the rarely used sealed procedures: programs that check every value, on two and on three nodes."""

from pathlib import Path

import pytest
from slow import slow

HERE = Path(__file__).parent


def check(result, mpi, words):
    """The program came to its end, which it says in `words`. What plain MPICH 4.0.2 does after that is its own: it often hangs in MPI_Finalize."""
    assert words in result.stdout, result.stdout + result.stderr
    assert result.returncode == 0 or (mpi == "mpich-4" and result.timed_out), result.stdout + result.stderr


# Plain MPICH 4.0.2 crashes in MPI_Reduce with MPI_IN_PLACE among the ranks of one node, so it gets one rank per node.
@pytest.mark.parametrize(
    ("mpi", "nodes", "ranks"),
    [
        ("mpich-5", 2, 2),
        ("mpich-5", 3, 5),
        ("mpich-5-abi", 3, 5),
        ("openmpi-5", 3, 5),
        ("mpich-4", 3, 3),
        ("openmpi-4", 3, 5),
    ],
)
def test_collectives_give_what_mpi_says(compile_mpi, run, mpi, nodes, ranks):
    result = run(
        [compile_mpi(HERE / "collectives.c", mpi), "backwards"],
        nodes=nodes,
        ranks=ranks,
        mpi=mpi,
        timeout=60 if mpi == "mpich-4" else 240,
    )
    check(result, mpi, "collectives: all right")


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", *slow("mpich-4", "openmpi-4")])
def test_rarely_used_procedures(compile_mpi, run, mpi):
    result = run([compile_mpi(HERE / "rarely_used.c", mpi)], nodes=2, ranks=4, mpi=mpi, timeout=30)
    check(result, mpi, "rarely used: all right")
