"""Fixtures for tests of the mpisec program. Imported by name: other tests import tests/conftest.py as `conftest`."""

import os
import subprocess
from dataclasses import dataclass

import pytest

from mpisec_lab import places

# What decides things for mpisec and what a launcher around the tests may have left.
_FOREIGN = ("MPISEC_", "MPI4PY_", "OMPI_", "PMI_", "PMIX_", "HYDI_", "MPI_LOCAL", "SLURM_", "LD_PRELOAD")


@dataclass(frozen=True)
class Ran:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def program():
    """Path of the mpisec under test."""
    return places.find_mpisec()


@pytest.fixture
def mpisec(program, tmp_path):
    """mpisec(arguments…, env={…}): runs it with a home directory of its own and no trace of a launcher."""

    def call(*arguments, env=None, cwd=None, binary=None):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        clean |= {"HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"} | (env or {})
        done = subprocess.run(
            [str(binary or program), *map(str, arguments)], env=clean, cwd=cwd, capture_output=True, text=True,
            timeout=60, check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return call
