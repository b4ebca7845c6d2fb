"""The lab says what to install on a machine that lacks it; the list for the tests has all that Slurm needs."""

import shutil
from pathlib import Path

import pytest

from mpisec_lab.__main__ import main
from mpisec_lab.slurm.cluster import PACKAGES

LIST = Path(__file__).resolve().parents[3] / "tools" / "apt-packages-slurm.txt"


@pytest.mark.parametrize("missing", ["slurmctld", "munged"])
def test_what_to_install(monkeypatch, capsys, missing):
    monkeypatch.setattr(shutil, "which", lambda program, **_: None if program == missing else f"/usr/bin/{program}")
    assert main(["slurm", "up"]) == 1
    said = capsys.readouterr().err
    assert f"{missing} missing" in said and f"apt-get install --no-install-recommends {PACKAGES}" in said


def test_a_machine_without_ip(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["check-rate", "--rate", "1gbit"]) == 1
    assert "apt-get install iproute2" in capsys.readouterr().err


def test_the_list_has_them():
    listed = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    assert set(PACKAGES.split()) < set(listed)
