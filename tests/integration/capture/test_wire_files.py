"""What access to files puts on the wire (S1): sealed, neither the file's name, nor hints, views or data. The same program plain shows its
name and its data."""

import re
import secrets
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from mpisec_lab.capture import count, find_runs

HERE = Path(__file__).parent
MPI = HERE.parent / "mpi"


@pytest.fixture(scope="module")
def seen(cluster, run, compile_mpi, tmp_path_factory):
    """seen(mpi, plain): how often name, hint, data and view were on the wire."""

    def get(mpi, plain):
        directory = tmp_path_factory.mktemp("wire")
        app = compile_mpi(HERE / "wire_files.c", mpi, flags=["-std=gnu11", "-O2", str(MPI / "harness.c")])
        name, hint = secrets.token_hex(16), secrets.token_hex(16)
        (directory / "names").write_text(f"{directory / name}\n{hint}\n")
        with cluster(2).capture(directory / "pcap") as capture:
            result = run([app, directory / "names", directory / "plaintext"], nodes=2, ranks=4, mpi=mpi, plain=plain, timeout=90,
                         env={"OMPI_MCA_mpi_yield_when_idle": "1"})
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
        streams, plaintext = capture.streams(), (directory / "plaintext").read_bytes()
        view = [int(offset) for offset in re.search(r"^view (.*)$", result.stdout, re.MULTILINE)[1].split()]
        for left in directory.iterdir():
            left.unlink()
        return {"name": count(streams, name.encode()), "hint": count(streams, hint.encode()),
                "data": len(find_runs(streams, plaintext, 16)),
                "view": sum(count(streams, struct.pack("<2q", *pair)) for pair in pairwise(view))}

    return get


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_nothing_of_a_file_on_the_wire(seen, mpi):
    """S1: sealed, no name, hint, data and view crosses in clear."""
    assert seen(mpi, False) == {"name": 0, "hint": 0, "data": 0, "view": 0}


def test_plain_shows_it(seen):
    """The same program without MPIsec: what is looked for is found. (Of hints ROMIO only tells those that it knows.)"""
    found = seen("mpich-5", True)
    assert found["name"] > 0 and found["data"] > 100 and found["view"] > 10, found
