"""MPISEC_PIPELINE_THRESHOLD=auto: messages of up to 512 KiB travel whole where ranks share a CPU, of up to 64 KiB elsewhere."""

import os
import re
from pathlib import Path

import pytest

VICTIM = Path(__file__).parents[2] / "adversary" / "victim.c"


@pytest.mark.parametrize("shared,size,whole", [(True, 500000, True), (True, 600000, False), (False, 60000, True), (False, 70000, False)])
def test_by_the_cpus_that_ranks_share(run, compile_mpi, shared, size, whole):
    """Rank 0 sends two messages of `size` bytes."""
    cpus = os.sched_getaffinity(0)
    if not shared and len(cpus) < 2:
        pytest.skip("two ranks need a CPU each")
    command = ["taskset", "--cpu-list", str(min(cpus))] * shared + [compile_mpi(VICTIM, flags=["-std=gnu11"]), "one", size, "recv"]
    result = run(command, nodes=2, ranks=2, env={"MPISEC_PIPELINE_THRESHOLD": "auto", "MPISEC_STATS": "ranks"})
    assert result.returncode == 0 and result.stdout.count("receive") == result.stdout.count(": as sent") == 2, result.stdout + result.stderr
    in_segments = sum(int(bytes_) for bytes_ in re.findall(r"^ +sealed in segments +\d+ +(\d+)", result.stderr, re.MULTILINE))
    assert in_segments == (0 if whole else 2 * size), result.stderr
