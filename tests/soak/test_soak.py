"""The soak (soak.py), for so short a time that only its own working is tested; what it judges is shown on samples."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from soak import growth

SOAK = Path(__file__).with_name("soak.py")


@pytest.mark.slow
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_soak_of_20_seconds(lab, tmp_path, mpi):
    """Memory may grow: so soon it is no leak."""
    command = [sys.executable, SOAK, "--seconds", "20", "--every", "3", "--mpi", mpi, "--growth", "30", "-o", tmp_path / "summary.json"]
    said = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    (summary,) = json.loads((tmp_path / "summary.json").read_text())
    assert summary["rounds"] > 20 and summary["flaps"] + summary["pressures"] > 0 and len(summary["growth"]) == 4


@pytest.mark.parametrize("leak", [0, 30])
def test_what_a_leak_is(tmp_path, leak):
    """Growth in the first third of the time is caches that fill."""
    file = tmp_path / "memory"
    file.write_text("".join(f"{second}.0 {100_000 + min(second, 100) * 50 + second * leak}\n" for second in range(300)))
    grown, _ = growth(file, 300)
    assert grown > 1 if leak else grown == 0, grown
