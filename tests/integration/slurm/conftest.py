"""Fixtures for jobs under Slurm. All of these tests are slow, and skipped where Slurm is not installed (tools/apt-packages-slurm.txt)."""

import secrets
from pathlib import Path

import pytest

from mpisec_lab import places
from mpisec_lab.capture import count
from mpisec_lab.errors import LabError
from mpisec_lab.slurm import SlurmCluster
from mpisec_lab.slurm.cluster import require_packages

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def slurm(lab):
    """slurm(nodes=2, **options): a SlurmCluster that the session shares, with no job on it."""
    try:
        require_packages()
    except LabError as error:
        pytest.skip(str(error))
    standing = {}

    def get(nodes=2, plugstack="", **settings):
        key = (nodes, plugstack, tuple(settings.items()))
        if key not in standing:
            standing[key] = SlurmCluster(nodes, plugstack=plugstack, settings=settings).__enter__()
        return standing[key]

    yield get
    for cluster in standing.values():
        cluster.close()


@pytest.fixture(scope="session")
def mpisec():
    """The program's path."""
    return places.find_mpisec()


@pytest.fixture(scope="session")
def plugin(mpisec):
    """Path of the plug-in for Slurm, which is built where Slurm's headers are."""
    path = mpisec.parent.parent / "lib" / "mpisec" / "mpisec-slurm.so"
    if not path.exists():
        pytest.skip("the plug-in for Slurm is not built: apt-get install libslurm-dev, then make build")
    return path


@pytest.fixture
def marker():
    """An argument for ring.c, which sends it with each byte one higher."""
    return "slurm-marker-" + secrets.token_hex(8)


@pytest.fixture
def ring(compile_mpi):
    """ring(mpi): the program."""
    return lambda mpi: compile_mpi(HERE / "ring.c", mpi)


@pytest.fixture
def watched(tmp_path, marker):
    """watched(cluster, command, **options): (Result, how often the marker was on the wire)."""

    def watched_(cluster, command, **options):
        options["env"] = {"MPISEC_KEY_FILE": cluster.key()} | (options.get("env") or {})
        with cluster.capture(tmp_path / "wire.pcap") as capture:
            result = cluster.submit(command, **{"timeout": 90, **options})
        return result, count(capture.streams(), bytes(byte + 1 for byte in marker.encode()))

    return watched_
