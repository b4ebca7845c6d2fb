"""Fixtures: the wheel of this tree, and environments into which pip has installed it beside an MPI's."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bare_environment import ask, bare

from mpisec_lab.mpis import find_mpi

TOP = Path(__file__).resolve().parents[3]


def _install(command):
    """What needs PyPI: skips the test where that fails; with MPISEC_LAB_REQUIRED=1 (CI) it is a failure."""
    done = subprocess.run([str(word) for word in command], cwd=TOP, env=bare(), capture_output=True, text=True, check=False)
    if done.returncode:
        (pytest.fail if os.environ.get("MPISEC_LAB_REQUIRED") == "1" else pytest.skip)(f"{command} failed: {done.stderr[-2000:]}")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A directory of all processes of this session."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own


@pytest.fixture(scope="session")
def wheel(shared):
    """Path of the wheel: the one that MPISEC_LAB_WHEEL names, else made now (minutes), once."""
    given = os.environ.get("MPISEC_LAB_WHEEL")
    if given:
        return Path(given).absolute()
    directory = shared / "dist"
    with open(shared / "wheel.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(directory.glob("mpisec-*.whl")):
            _install([TOP / "tools/venv.sh", ".deps/wheel-venv", "tools/wheel-requirements.txt"])
            ask([TOP / "tools/wheel.sh", directory], cwd=TOP, env=bare())
    (made,) = directory.glob("mpisec-*.whl")
    return made


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
                _install([venv / "bin/pip", "install", "--quiet", find_mpi(mpi).requirement, "mpi4py==4.1.2"])
        return venv

    return get
