"""Fixtures: environments into which pip has installed the wheel beside an MPI's."""

import fcntl
import sys
from pathlib import Path

import pytest
from bare_environment import ask, bare, fetch

from mpisec_lab.mpis import find_mpi


@pytest.fixture(scope="session")
def environment(shared, wheel):
    """environment(mpi): a fresh virtual environment with the wheel and that MPI's, where the lab of the wheel looks for it."""

    def get(mpi):
        venv = shared / "mpis" / mpi
        venv.parent.mkdir(exist_ok=True)
        with open(venv.parent / f"{mpi}.test-lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (venv / "bin/mpisec").exists():
                ask([Path(sys.executable).resolve(), "-m", "venv", venv], env=bare())
                ask([venv / "bin/pip", "install", "--no-index", "--no-deps", wheel], env=bare())
                fetch([venv / "bin/pip", "install", "--quiet", find_mpi(mpi).requirement, "mpi4py==4.1.2"])
        return venv

    return get
