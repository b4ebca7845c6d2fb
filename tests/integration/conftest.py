"""Fixtures that folders of integration tests share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
