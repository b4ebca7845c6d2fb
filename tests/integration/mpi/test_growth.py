"""What MPIsec adds in memory of a rank and in traffic of a node, for more ranks (docs/performance.md).

    pytest -m slow -s tests/integration/mpi/test_growth.py
"""

import statistics
from pathlib import Path

import pytest

NODES_AND_RANKS = [(2, 8), (2, 64), (16, 64), (64, 256)]
MOMENTS = ("init", "messages", "duplicates")


def measure(run, program, directory, nodes, ranks, **job):
    """{moment: (memory, bytes that its node has received)}, each of the median rank."""
    directory.mkdir()
    result = run([program, directory], nodes=nodes, ranks=ranks, timeout=500, **job)
    assert result.returncode == 0, result.stdout + result.stderr
    ranks_noted = [{moment: (int(memory), int(received)) for moment, memory, received in map(str.split, file.read_text().splitlines())}
                   for file in directory.iterdir()]
    assert len(ranks_noted) == ranks
    return {moment: tuple(statistics.median(noted[moment][what] for noted in ranks_noted) for what in (0, 1)) for moment in MOMENTS}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("mpi", ["mpich-5"])
def test_little_grows_with_the_ranks(run, compile_mpi, tmp_path, mpi):
    """Of a rank's memory next to nothing, also with many communicators; of what a node receives, what the nodes need."""
    program = compile_mpi(Path(__file__).with_name("growth.c"), mpi)
    run([program, tmp_path], nodes=2, ranks=2, mpi=mpi)  # a machine's first job measures all crypto libraries
    memory, traffic = {}, {}
    for nodes, ranks in NODES_AND_RANKS:
        plain, sealed = (measure(run, program, tmp_path / f"{nodes}-{ranks}-{kind}", nodes, ranks, mpi=mpi, plain=kind == "plain")
                         for kind in ("plain", "sealed"))
        added = {moment: sealed[moment][0] - plain[moment][0] for moment in MOMENTS}
        memory[nodes, ranks] = added
        traffic[nodes, ranks] = sealed["init"][1] - plain["init"][1]
        print(f"{mpi}, {nodes} nodes, {ranks} ranks: memory of a rank, KiB more: {({m: round(b / 1024) for m, b in added.items()})}; "
              f"a node received in MPI_Init, KiB more: {traffic[nodes, ranks] / 1024:.1f}")
    assert memory[64, 256]["duplicates"] < memory[2, 8]["duplicates"] + 512 * 1024
    assert traffic[64, 256] < traffic[2, 8] + 64 * 512, traffic  # a card of 276 bytes for each node, and what carries it
