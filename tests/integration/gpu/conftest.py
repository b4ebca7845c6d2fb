"""A libcuda.so.1 that imitates a GPU (tests/unit/gpu/fake_driver.cpp)."""

import subprocess
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
