"""MPISEC_PIPELINE_THRESHOLD=auto: messages of up to 512 KiB travel whole where ranks share a CPU; elsewhere of up to 128 KiB with a fast cipher and
of up to 64 KiB with a slow one."""

import os
import re
from pathlib import Path

import pytest

VICTIM = Path(__file__).parents[2] / "adversary" / "victim.c"


SLOW = "sodium:chacha20-poly1305"  # nowhere 10 GB/s


@pytest.mark.parametrize("shared,aead,size,whole", [(True, "auto", 500000, True), (True, "auto", 600000, False),
                                                    (False, "auto", 60000, True), (False, "auto", 140000, False), (False, SLOW, 70000, False)])
def test_by_cpus_and_cipher(run, compile_mpi, shared, aead, size, whole):
    """Rank 0 sends two messages of `size` bytes."""
    cpus = os.sched_getaffinity(0)
    if not shared and len(cpus) < 2:
        pytest.skip("two ranks need a CPU each")
    command = ["taskset", "--cpu-list", str(min(cpus))] * shared + [compile_mpi(VICTIM, flags=["-std=gnu11"]), "one", size, "recv"]
    result = run(command, nodes=2, ranks=2, env={"MPISEC_PIPELINE_THRESHOLD": "auto", "MPISEC_STATS": "ranks", "MPISEC_AEAD": aead})
    assert result.returncode == 0 and result.stdout.count("receive") == result.stdout.count(": as sent") == 2, result.stdout + result.stderr
    in_segments = sum(int(bytes_) for bytes_ in re.findall(r"^ +sealed in segments +\d+ +(\d+)", result.stderr, re.MULTILINE))
    assert in_segments == (0 if whole else 2 * size), result.stderr
