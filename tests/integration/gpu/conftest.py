"""Drivers: a libcuda.so.1 that imitates a GPU (tests/unit/gpu/fake_driver.cpp), and the machine's own where there is a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory):
    """Its file. Built here, because sanitizer builds and those without nvcc have none."""
    file = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    source = TOP / "tests/unit/gpu/fake_driver.cpp"
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{TOP / 'src'}", "-Wl,-soname,libcuda.so.1", "-o", str(file), str(source)]
    subprocess.run(command, check=True)
    return str(file)


@pytest.fixture(scope="session", params=["fake", "real"])
def driver(request):
    """The fake driver's file; then the machine's, where it has a GPU. MPISEC_LAB_GPU_REQUIRED=1: a machine without one fails the test."""
    if request.param == "fake":
        return request.getfixturevalue("fake_driver")
    why = _why_no_gpu()
    if why and os.environ.get("MPISEC_LAB_GPU_REQUIRED") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    return "libcuda.so.1"


def _why_no_gpu():
    """A sentence, or None where there is a GPU. Asked in a process of its own: CUDA does not survive a fork."""
    ask = (
        "import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); count = ctypes.c_int(); error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)); "
        "assert error == 0, f'error {error} of the CUDA driver'; assert count.value, 'the CUDA driver sees no GPU'"
    )
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    return None if asked.returncode == 0 else f"no GPU here: {asked.stderr.strip().splitlines()[-1]}"
