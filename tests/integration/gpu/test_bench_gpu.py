"""`mpisec bench gpu` without a GPU, and on the fake one; what the compiler makes of the kernels."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpisec_lab import places

TOP = Path(__file__).resolve().parents[3]
SMALL = ["--sizes", "4K,40000", "--batch", "80000", "--checks", "5", "--repetitions", "1"]


def library():
    return places.find_mpisec().parent.parent / "lib/mpisec/libmpisec-gpu.so"


def bench(*arguments, **environment):
    command = [str(places.find_mpisec()), "bench", "gpu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def not_tested(why):
    if os.environ.get("MPISEC_LAB_TEST_REQUIRED") == "1":
        pytest.fail(why)
    pytest.skip(why)


def test_says_that_there_is_no_gpu(tmp_path):
    """And ends with status 2. A file that is no driver stands in the way of one that this machine may have."""
    (tmp_path / "libcuda.so.1").write_text("none")
    result = bench(LD_LIBRARY_PATH=str(tmp_path))
    assert result.returncode == 2
    assert re.search("There is no CUDA driver on this machine|This build of MPIsec has no code for GPUs", result.stderr), result.stderr
    assert result.stdout == ""


def test_measures_on_a_gpu(fake_driver):
    """A row per cipher and size, each with positive figures; as the report reads them."""
    if not library().exists():
        not_tested("nvcc was not there when this tree was built")
    result = bench(*SMALL, "--json", LD_LIBRARY_PATH=str(Path(fake_driver).parent))
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [(row["cipher"], row["bytes"], row["packets"]) for row in rows] == [
        (f"aes-{bits}-{mode}", size, packets) for mode in ("ctr", "gcm") for bits in (128, 256) for size, packets in ((4096, 19), (40000, 2))
    ]
    for row in rows:
        assert row["library"] == "gpu" and row["version"].startswith("Fake GPU (compute capability 9.0")
        assert all(row[f"{name}_gb_per_s"] > 0 for name in ("seal", "open", "one_by_one", "with_copies"))


def test_a_gpu_that_fails_is_said(fake_driver):
    if not library().exists():
        not_tested("nvcc was not there when this tree was built")
    result = bench(*SMALL, LD_LIBRARY_PATH=str(Path(fake_driver).parent), FAKE_CUDA_FAIL="cuLaunchKernel")
    assert result.returncode == 1
    assert "The CUDA driver could not start a kernel" in result.stderr


def test_wrong_cipher(fake_driver):
    if not library().exists():
        not_tested("nvcc was not there when this tree was built")
    result = bench(*SMALL, "--ciphers", "des", LD_LIBRARY_PATH=str(Path(fake_driver).parent))
    assert result.returncode == 2
    assert 'There is no "des" on a GPU' in result.stderr


@pytest.mark.slow
def test_kernels_keep_their_state_in_registers():
    """What spills is slower, and in memory that others may see."""
    nvcc = sorted(TOP.glob(".deps/gpu-venv/lib/python3*/site-packages/nvidia/cu*/bin/nvcc"))
    if not nvcc:
        pytest.skip("no nvcc: tools/setup.sh gpu")
    result = subprocess.run([sys.executable, TOP / "tools/gpu_resources.py", "sm_90", "--spills", "0"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(re.findall(r"^\| `mpisec_\w+` \| sm_90 \| \d+ \| 0 \| 0 \|", result.stdout, re.MULTILINE)) == 6
