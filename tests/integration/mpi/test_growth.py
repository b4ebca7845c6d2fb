"""What MPIsec adds in memory of a rank and in traffic of a node, for more ranks (docs/performance.md).

    pytest -m slow -s tests/integration/mpi/test_growth.py
"""

import statistics
from pathlib import Path

import pytest

NODES_AND_RANKS = [(2, 8), (2, 64), (16, 64), (64, 256)]
MOMENTS = ("init", "messages", "duplicates", "before", "end")


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
    """Of a rank's memory next to nothing, also with many communicators; of what a node receives, as much for each of its ranks."""
    program = compile_mpi(Path(__file__).with_name("growth.c"), mpi)
    run([program, tmp_path], nodes=2, ranks=2, mpi=mpi)  # a machine's first job measures all crypto libraries
    memory, traffic = {}, {}
    for nodes, ranks in NODES_AND_RANKS:
        plain, sealed = (measure(run, program, tmp_path / f"{nodes}-{ranks}-{kind}", nodes, ranks, mpi=mpi, plain=kind == "plain")
                         for kind in ("plain", "sealed"))
        added = {moment: sealed[moment][0] - plain[moment][0] for moment in MOMENTS}
        memory[nodes, ranks] = added
        received = {moment: sealed[moment][1] - plain[moment][1] for moment in ("init",)}
        received["end"] = sealed["end"][1] - sealed["before"][1] - plain["end"][1] + plain["before"][1]
        traffic[nodes, ranks] = received
        print(f"{mpi}, {nodes} nodes, {ranks} ranks: memory of a rank, KiB more: {({m: round(b / 1024) for m, b in added.items()})}; "
              f"a node received, KiB more: {({m: round(b / 1024, 1) for m, b in received.items()})}")
    assert memory[64, 256]["duplicates"] < memory[2, 8]["duplicates"] + 512 * 1024
    for moment, most in ("init", 32 * 1024), ("end", 2 * 1024):
        assert traffic[64, 256][moment] / 4 < traffic[2, 8][moment] / 4 + most, traffic
