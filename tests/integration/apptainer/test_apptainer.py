"""Jobs whose ranks are in containers of Apptainer (docs/kubernetes.md), on two nodes of the lab. Needs debootstrap and Apptainer, which no Debian
release has: APPTAINER names its program where it is not on PATH."""

import os
import shutil
from pathlib import Path

import pytest
from bare_environment import ask, bare
from bare_system import BareSystem

from mpisec_lab.capture import count
from mpisec_lab.mpis import find_mpi

TOP = Path(__file__).resolve().parents[3]
MARKER = "APPTAINER-MARKER-3e85"
REPEATS = 20_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="session")
def apptainer(lab):
    """Its path. Of the session, as the wheel is: no wheel is made where this is missing."""
    program = shutil.which(os.environ.get("APPTAINER", "apptainer"))
    if program is None:
        pytest.skip("Apptainer is not here: put it on PATH, or set APPTAINER to its program")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed: apt-get install debootstrap")
    return Path(program).absolute()


@pytest.fixture(scope="module")
def image(apptainer, wheel, tmp_path_factory):
    """The image of deploy/container/mpisec.def, as a directory, on a Debian that debootstrap makes."""
    directory = tmp_path_factory.mktemp("image")
    debian = BareSystem(directory / "debian", "bookworm")
    for device in (debian.root / "dev").iterdir():  # Apptainer has its own, and not every root may make devices
        shutil.rmtree(device) if device.is_dir() and not device.is_symlink() else device.unlink()
    text = (TOP / "deploy/container/mpisec.def").read_text()
    (directory / "mpisec.def").write_text(text.replace("Bootstrap: docker", "Bootstrap: localimage").replace("debian:12", str(debian.root)))
    (directory / "dist").mkdir()
    shutil.copy(wheel, directory / "dist")
    ask([apptainer, "build", "--sandbox", "image", "mpisec.def"], env=bare(), cwd=directory)
    debian.remove()
    yield directory / "image"
    shutil.rmtree(directory)


@pytest.fixture
def home(image, apptainer, tmp_path):
    """A home directory with a key in it."""
    key = tmp_path / "home/.config/mpisec/key"
    ask([apptainer, "exec", "--userns", "--bind", tmp_path, image, "mpisec", "key", "new", key], env=bare())
    return tmp_path / "home"


@pytest.fixture
def job(cluster, run, home, tmp_path):
    """job(command, mpi, ranks): what it printed, and how often the marker was on the wire, as a job on two nodes."""

    def run_(command, mpi, ranks, **variables):
        with cluster(2).capture(tmp_path / "pcap") as wire:
            ran = run([*command, MARKER, REPEATS], ranks=ranks, mpi=mpi, plain=True, env={"APPTAINER_HOME": home, **variables})
        return ran.check().stdout, count(wire.streams(), MARKER.encode())

    return run_


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "sealed"])
def test_mpi_in_the_image(apptainer, image, job, compile_mpi, plain):
    """S1: the launcher is the machine's; the runscript seals."""
    app = compile_mpi(TOP / "tests/integration/lab/marker.c", "mpich-4")
    said, seen = job([apptainer, "exec" if plain else "run", "--userns", "--bind", app.parent, image, app], "mpich-4", 2)
    assert f"right {REPEATS} of {REPEATS}" in said
    assert seen > REPEATS * 0.9 if plain else seen <= 10, "only the launcher's command line may hold it"


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "sealed"])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_mpi_of_the_machine(apptainer, image, job, compile_mpi, mpi, plain):
    """S1: it is bound into the image at its own path; containers of one node share memory."""
    app = compile_mpi(Path(__file__).with_name("everyone.c"), mpi)
    paths = ",".join(str(path) for path in (app.parent, find_mpi(mpi).venv, find_mpi(mpi).venv.resolve()))
    start = [apptainer, "exec", "--userns", "--bind", paths, image, *([] if plain else ["mpisec", "exec"]), app]
    said, seen = job(start, mpi, 4, MPIR_CVAR_CH4_CMA_ENABLE=0)  # docs/kubernetes.md
    assert "right 12 of 12, 2 on a node" in said
    assert seen > REPEATS * 7 if plain else seen <= 10, "only the launcher's command line may hold it"
