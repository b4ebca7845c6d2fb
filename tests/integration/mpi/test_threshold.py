"""MPISEC_PIPELINE_THRESHOLD=auto: messages of up to 512 KiB travel whole where ranks share a CPU; elsewhere of up to 256 KiB with a fast cipher, 128 KiB
with one of medium speed, both of up to 512 KiB where the pipeline is off or trials say so, and 64 KiB with a slow one."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from mpi_programs import build

from mpisec_lab import places

VICTIM = Path(__file__).parents[2] / "adversary" / "victim.c"
FAST = "aegis:aegis-128x2"
SLOW = "sodium:chacha20-poly1305"  # nowhere 4 GB/s
SURELY_FAST = 15  # GB/s
TRIES = 5  # a busy machine seals slowly


@pytest.fixture
def in_segments(run, compile_mpi):
    """in_segments(size, aead, shared): bytes that are sealed in segments when rank 0 sends two messages of `size` bytes."""

    def count(size, aead="auto", shared=False, pipeline="auto"):
        cpus = os.sched_getaffinity(0)
        if not shared and len(cpus) < 2:
            pytest.skip("two ranks need a CPU each")
        command = ["taskset", "--cpu-list", str(min(cpus))] * shared + [compile_mpi(VICTIM, flags=["-std=gnu11"]), "one", size, "recv"]
        result = run(command, nodes=2, ranks=2, env={"MPISEC_PIPELINE_THRESHOLD": "auto", "MPISEC_STATS": "ranks", "MPISEC_AEAD": aead,
                                                        "MPISEC_PIPELINE": pipeline})
        assert result.returncode == 0 and result.stdout.count("receive") == result.stdout.count(": as sent") == 2, result.stdout + result.stderr
        return sum(int(bytes_) for bytes_ in re.findall(r"^ +sealed in segments +\d+ +(\d+)", result.stderr, re.MULTILINE))

    return count


@pytest.mark.parametrize("shared,size,whole", [(True, 500000, True), (True, 600000, False), (False, 60000, True), (False, 300000, False)])
def test_by_the_cpus_that_ranks_share(in_segments, shared, size, whole):
    """With any cipher."""
    assert in_segments(size, shared=shared) == (0 if whole else 2 * size)


def test_with_a_slow_cipher(in_segments):
    """Beyond 64 KiB."""
    assert in_segments(70000, SLOW) == 2 * 70000


@pytest.fixture(scope="module")
def surely_fast():
    """Skips where no cipher is surely a fast one."""
    library, cipher = FAST.split(":")
    command = [places.find_mpisec(), "bench", "crypto", "--libraries", library, "--ciphers", cipher, "--sizes", "64K", "--json"]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if measured[0]["seal_gb_per_s"] < SURELY_FAST:
        pytest.skip("no cipher is surely a fast one here")


def test_with_a_fast_cipher(in_segments, surely_fast):
    """Up to 256 KiB in one part."""
    assert any(in_segments(256 * 1024, FAST) == 0 for _ in range(TRIES))
    assert in_segments(256 * 1024 + 1, FAST) == 2 * (256 * 1024 + 1)


def test_without_pipeline(in_segments, surely_fast):
    """Up to 512 KiB in one part."""
    assert any(in_segments(512 * 1024, FAST, pipeline="off") == 0 for _ in range(TRIES))
    assert in_segments(512 * 1024 + 1, FAST, pipeline="off") == 2 * (512 * 1024 + 1)


@pytest.mark.parametrize("pipeline", ["auto", "off"])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_in_every_way(run, compile_mpi, surely_fast, mpi, pipeline):
    """Every length around those of first parts, sent, received and probed in every way, alone and several at a time."""
    app = build(compile_mpi, mpi, "in_one_part.c", ["harness.c"])
    result = run([app], nodes=2, ranks=2, mpi=mpi, env={"MPISEC_PIPELINE_THRESHOLD": "auto", "MPISEC_AEAD": FAST, "MPISEC_PIPELINE": pipeline})
    assert result.returncode == 0 and "in one part: done" in result.stdout, result.stdout + result.stderr
