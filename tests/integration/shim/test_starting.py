"""S1 at the two ends of a job's life: what a thread sends while MPI_Init is under way, or anyone after MPI_Finalize, is not in clear."""

from pathlib import Path

import pytest

from mpisec_lab.capture import count

HERE = Path(__file__).parent
MARKER = "lifecycle-marker-5b1f0c"
SENT = bytes(byte + 1 for byte in MARKER.encode())  # the argument itself crosses the network with the launcher
MPIS = ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"]


@pytest.fixture
def attempt(cluster, run, compile_mpi, tmp_path):
    """attempt(mode, mpi, plain): (Result, how often the marker was on the wire)."""

    def attempt_(mode, mpi, plain=False):
        app = compile_mpi(HERE / "starting.c", mpi, flags=["-std=gnu11", "-pthread", "-ldl"])
        with cluster(2).capture(tmp_path / "pcap") as capture:
            result = run([app, mode, MARKER], nodes=2, ranks=2, mpi=mpi, plain=plain, timeout=45)
        return result, count(capture.streams(), SENT)

    return attempt_


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("mode", ["polls", "knows"])
def test_a_thread_that_sends_at_once_is_protected(attempt, mode, mpi):
    """S1: MPI_Initialized is false until the job is protected; who knows better waits in its call until then."""
    result, seen = attempt(mode, mpi)
    assert seen == 0, f"on the wire in clear: {seen} markers"
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("arrived") == 1 and "WRONG" not in result.stdout


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_plain_sends_it_in_clear(attempt, mpi):
    result, seen = attempt("polls", mpi, plain=True)
    assert result.returncode == 0, result.stderr
    assert seen == 100


@pytest.mark.parametrize("mpi", MPIS)
def test_a_send_after_finalize_fails(attempt, mpi):
    result, seen = attempt("late", mpi)
    assert "sends late" in result.stderr and "SENT" not in result.stderr
    assert result.returncode != 0
    assert "MPI_Send was called after MPI_Finalize had wiped the keys" in result.stderr
    assert seen == 0 and "WRONG" not in result.stdout


@pytest.mark.parametrize("mpi", MPIS)
def test_a_collective_after_finalize_fails(attempt, mpi):
    result, seen = attempt("together", mpi)
    assert result.returncode != 0 and "SENT" not in result.stderr
    assert "MPI_Bcast was called after MPI_Finalize had wiped the keys" in result.stderr
    assert seen == 0 and "WRONG" not in result.stdout


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_send_after_finalize_beside_a_session_is_not_in_clear(attempt, mpi):
    """S1: the library stays up then, and MPICH sends on MPI_COMM_WORLD as before. So do the keys: they are wiped with the session."""
    result, seen = attempt("session", mpi)
    # Where the message comes while MPICH is ending, MPICH aborts, and the launcher drops what the sender has said.
    assert "sends late" in result.stderr or "unmatched message" in result.stderr
    assert seen == 0, f"on the wire in clear: {seen} markers"


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_mpi_initialized_past_mpisec(attempt, mpi):
    """S1: no keys were agreed on, so what comes through MPIsec then is not taken for "before MPI_Init"."""
    result, seen = attempt("past", mpi)
    assert seen == 0, f"on the wire in clear: {seen} markers"
    assert result.returncode != 0 and "MPI was initialized past MPIsec" in result.stderr


def test_asking_without_an_mpi_library(tmp_path):
    """A program that is no MPI program may look for MPI_Initialized, find MPIsec's and call it."""
    import subprocess

    from mpisec_lab import places

    source = tmp_path / "ask.c"
    source.write_text("""#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    int flag = 5, (*initialized)(int*) = (int (*)(int*))dlsym(RTLD_DEFAULT, "MPI_Initialized");
    if (initialized) initialized(&flag);
    printf("%d\\n", flag);
    return 0;
}
""")
    program = tmp_path / "ask"
    subprocess.run(["cc", "-o", program, source, "-ldl"], check=True)
    shims = Path(places.find_mpisec(None)).parent.parent / "lib"
    for shim in sorted(shims.glob("libmpisec-*.so")):
        if shim.name.split("-")[1] in ("mpich.so", "openmpi.so", "abi.so"):
            done = subprocess.run([program], env={"LD_PRELOAD": str(shim)}, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", ""), shim.name


SESSIONS = """#include <mpi.h>
#include <stdio.h>
int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int one = 1, sum = 0, rank, initialized = 5;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Initialized(&initialized);
    if (rank == 0) printf("sum %d initialized %d\\n", sum, initialized);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return 0;
}
"""


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_program_of_sessions_alone_still_runs_inside_a_node(run, compile_mpi, mpi):
    result = run([compile_mpi(SESSIONS, mpi)], nodes=1, ranks=2, mpi=mpi)
    assert result.returncode == 0, result.stderr
    assert "sum 2 initialized 0" in result.stdout
