"""From nothing to the first sealed job: an empty Debian with Python, three commands. `-s` shows how long each took (docs/install.md).
Needs debootstrap, and networks for Debian's packages and PyPI."""

import os
import shutil
from pathlib import Path

import pytest
from bare_system import BareSystem

from mpisec_lab.capture import count, read_streams

MARKER = "FIRST-JOB-MARKER-58e1"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(params=["bookworm", "trixie"])
def system(request, lab, tmp_path):
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: apt-get install debootstrap")
    one = BareSystem(tmp_path / "root", request.param, ["python3-venv", "iproute2", "procps", "tcpdump"])
    yield one
    one.remove()


def test_three_commands(system, wheel, capsys):
    """S1: what the job sends is not on the wire."""
    file = system.copy(wheel)
    system.copy(Path(__file__).with_name("marker.py"))
    system("python3 -m venv /root/mpi")
    commands = [
        f"/root/mpi/bin/pip install --quiet --no-cache-dir {file} mpich mpi4py",
        "/root/mpi/bin/mpisec key new",
        f"/root/mpi/bin/mpisec lab run --nodes 2 -n 4 --capture /root/pcap --timeout 120 python3 /root/marker.py {MARKER[::-1]} 500",
    ]
    seconds, said = [], ""
    for command in commands:
        took, said = system.timed(f"cd /root && . mpi/bin/activate && {command}")
        seconds.append(took)
    assert "right 1000 of 1000, sum of ranks 6" in said, said
    streams = list(read_streams(system.root / "root/pcap"))
    assert streams and count(streams, MARKER.encode()) == 0
    with capsys.disabled():
        print(f"\n{system.release}: {sum(seconds):.1f} s ({', '.join(f'{one:.1f}' for one in seconds)}) on {os.cpu_count()} CPUs")
