"""Debian packages (`make deb`): what lintian says, what is in them, and a sealed job from them on an empty Debian. Minutes: `make test-all`, or
`pytest -m slow tests/integration/packages`; with MPISEC_LAB_DEBS=dist/deb none are built. Needs tools/apt-packages-packaging.txt."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from bare_system import BareSystem

from mpisec_lab.capture import count, read_streams

TOP = Path(__file__).resolve().parents[3]
MARKER = "DEB-MARKER-0b77"
PACKAGES = ("mpisec", "mpisec-dev", "mpisec-lab", "mpisec-plugins", "mpisec-slurm")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


def ask(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    """Directory of the packages; lintian has no complaint, or tools/deb.sh fails."""
    given = os.environ.get("MPISEC_LAB_DEBS")
    if given:
        return Path(given).absolute()
    for program in ("dh", "dh_python3", "lintian"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: see tools/apt-packages-packaging.txt")
    directory = tmp_path_factory.mktemp("debs")
    made = subprocess.run([TOP / "tools/deb.sh", directory], cwd=TOP, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-6000:] + made.stderr[-2000:]
    return directory


def files_in(debs, package):
    (deb,) = debs.glob(f"{package}_*.deb")
    return {line.split(maxsplit=5)[5].removeprefix("./") for line in ask("dpkg-deb", "-c", deb).splitlines()}


def test_each_package_has_its_part(debs):
    libraries = "usr/lib/x86_64-linux-gnu/mpisec"
    inside = {package: files_in(debs, package) for package in PACKAGES}
    assert {"usr/bin/mpisec", f"{libraries}/libmpisec-mpich.so", f"{libraries}/libmpisec-abi.so", f"{libraries}/libmpisec-openmpi.so",
            "usr/share/bash-completion/completions/mpisec", "usr/share/man/man1/mpisec.1.gz"} <= inside["mpisec"]
    for name in ("openssl", "boringssl", "aegis", "ipsec-mb", "sodium", "cryptopp"):
        assert f"{libraries}/mpisec/libmpisec-aead-{name}.so" in inside["mpisec-plugins"]
    assert "usr/share/mpisec/lab/mpisec_lab/__main__.py" in inside["mpisec-lab"] and "usr/include/mpisec/mpisec.h" in inside["mpisec-dev"]
    assert f"{libraries}/mpisec/mpisec-slurm.so" in inside["mpisec-slurm"]
    listed = [name for names in inside.values() for name in names if name and not name.endswith("/")]
    assert len(listed) == len(set(listed)), "two packages have a file of one name"


def test_a_sealed_job_from_them(debs, lab, tmp_path):
    """S1, on an empty Debian 12 with Debian's own MPICH; and nothing of them is left when they are removed."""
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: apt-get install debootstrap")
    system = BareSystem(tmp_path / "root", "bookworm")
    try:
        names = [system.copy(next(debs.glob(f"{package}_*.deb"))) for package in PACKAGES]
        app = system.copy(TOP / "tests/integration/lab/marker.c")
        wanted = " ".join(["gcc libc6-dev mpich libmpich-dev", *names])
        system(f"apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install {wanted}")
        seen = {}
        for how in ("--plain", "--timeout=120"):
            said = system(f"cd /root && mpicc -o app {app} && mpisec lab run {how} --nodes 2 -n 2 --mpi mpich-4 --capture /root/pcap ./app {MARKER} 500")
            assert re.search(r"right \d+ of \d+", said), said
            seen[how] = count(read_streams(system.root / "root/pcap"), MARKER.encode())
        assert seen["--plain"] >= 400 and seen["--timeout=120"] <= 10, seen
        system("apt-get -q -y purge " + " ".join(PACKAGES))
        left = [path for path in (system.root / "usr").rglob("*mpisec*") if "share/doc" not in str(path)]
        assert not left, left
    finally:
        system.remove()
