"""Fixtures that folders of integration tests share."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bare_environment import ask, bare, fetch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def report_of(tmp_path):
    """report_of(file): the text of the page that `mpisec report` makes of one result file."""

    def text(file):
        page = tmp_path / "report.html"
        path = os.pathsep.join(str(ROOT / name) for name in ("bench", "lab"))
        done = subprocess.run([sys.executable, "-m", "mpisec_bench.report", file, "-o", page], env=os.environ | {"PYTHONPATH": path},
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return page.read_text(encoding="utf-8")

    return text


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
            fetch([ROOT / "tools/venv.sh", ".deps/wheel-venv", "tools/wheel-requirements.txt"], cwd=ROOT)
            ask([ROOT / "tools/wheel.sh", directory], cwd=ROOT, env=bare())
    (made,) = directory.glob("mpisec-*.whl")
    return made
