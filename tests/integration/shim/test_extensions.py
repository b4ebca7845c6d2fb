"""Extensions of the libraries: that look at requests, and that communicate."""

import re
import subprocess
from pathlib import Path

import pytest

from mpisec_lab import places
from mpisec_lab.capture import count
from mpisec_lab.mpis import find_mpi

HERE = Path(__file__).parent
# (MPI, its library under the directory of its compiler's, ours).
LIBRARIES = [("mpich-5", "libmpi.so.12", "mpich"), ("openmpi-5", "libmpi.so.40", "openmpi"), ("mpich-4", "libmpich.so.12", "mpich"),
             ("openmpi-4", "libmpi.so.40", "openmpi"), ("impi", "libmpi.so.12", "mpich")]
# What sends nothing, or works on windows and requests that MPIsec knows. A name that is new here is to be looked at.
LOCAL = re.compile(r"""MPIX_(Query_|GPU_query|Delete_error|Grequest_|Async_|Info_set_hex|Op_create_x|Type_iov|St(art|op)_progress|Stream_
    |Wait(all)?_enqueue|\w+_create_errhandler_x|Threadcomm_|Win_\w*notify|(Get|Put)_notify
    |Comm_(failure_|get_failed|ack_failed|revoke|is_revoked|get_stream|test_threadcomm))""", re.VERBOSE)


@pytest.mark.parametrize("plain", [False, True], ids=["sealed", "plain"])
def test_a_request_is_complete_when_its_message_has_come(run, compile_mpi, plain):
    """M6: not as soon as the program has a handle, which is the library's own and inactive."""
    app = compile_mpi(HERE / "extensions.c", "mpich-5", flags=["-std=gnu11"])
    result = run([app], nodes=2, ranks=2, mpi="mpich-5", plain=plain, timeout=30)
    assert sorted(result.stdout.split("\n")) == ["", "0: early 0, got it", "1: early 0, got it"], result.stdout + result.stderr


def shown_by(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\bMPIX_\w+", text))


@pytest.mark.parametrize(("mpi", "name", "family"), LIBRARIES)
def test_every_extension_that_communicates_is_known(mpi, name, family):
    """S1: of all libraries here, not only of those whose headers MPIsec is built with."""
    if not find_mpi(mpi).available():
        pytest.skip(f"{mpi} is not installed")
    own = places.mpis() / mpi / "lib" / name
    library = own if own.exists() else next(Path("/usr/lib").glob(f"*/{name}"))
    ours = shown_by(places.find_mpisec().parent.parent / f"lib/libmpisec-{family}.so")
    unknown = {extension for extension in shown_by(library) - ours if not LOCAL.match(extension)}
    assert not unknown, "classify them in gen/classes.toml"


def test_persistent_collectives_by_their_earlier_names(cluster, run, compile_mpi, tmp_path):
    """S1: of Open MPI 4, whose Fortran bindings call them too."""
    app = compile_mpi(HERE / "earlier_names.c", "openmpi-4", flags=["-std=gnu11"])
    for plain in True, False:
        with cluster(2).capture(tmp_path / "pcap") as capture:
            result = run([app], nodes=2, ranks=4, mpi="openmpi-4", plain=plain)
        assert result.returncode == 0 and result.stdout.count("right") == 4, result.stdout + result.stderr
        assert (count(capture.streams(), b"EARLIER-NAME-MARK") > 0) == plain
