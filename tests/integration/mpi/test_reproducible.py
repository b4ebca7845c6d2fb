"""Reductions give the same bits from run to run (docs/collectives.md, "Reproducibility")."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize(("nodes", "ranks"), [(2, 2), (2, 6)])
def test_same_bits_from_run_to_run(run, compile_mpi, mpi, nodes, ranks):
    """Whichever rank comes first."""
    program = compile_mpi(Path(__file__).with_name("reproducible.c"), mpi)
    seen = set()
    for _ in range(3):
        result = run([program], nodes=nodes, ranks=ranks, mpi=mpi)
        assert result.returncode == 0, result.stderr
        lines = sorted(line for line in result.stdout.splitlines() if line.startswith("rank "))
        assert len(lines) == ranks, result.stdout
        seen.add(tuple(lines))
    assert len(seen) == 1, seen
