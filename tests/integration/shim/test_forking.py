"""Children of ranks (S1, S4): they leave the parent's connections and keys alone, and the job goes on."""

import re
from pathlib import Path

import pytest

from mpisec_lab.capture import count

HERE = Path(__file__).parent
MARKER = "forked-marker-93ce7a"
SENT = bytes(byte + 1 for byte in MARKER.encode())  # the argument itself crosses the network with the launcher
SENTENCE = "was called in a child process that fork() made after MPI_Init"
MPIS = ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"]
LIBRARIES = ["openssl", "boringssl", "cryptopp", "ipp", "ipsec-mb:aes-256-gcm", "ipsec-mb:chacha20-poly1305", "sodium", "aegis:aegis-256"]


@pytest.fixture
def fork(run, compile_mpi):
    def fork_(way, mpi, env=None, nodes=2, ranks=2, **options):
        app = compile_mpi(HERE / "forking.c", mpi, flags=["-std=gnu11"])
        return run([app, way, MARKER], nodes=nodes, ranks=ranks, mpi=mpi, timeout=60, env=env, **options)

    return fork_


def child(result):
    """Its exit status; the job itself went on to its end."""
    everything = result.stdout[-2000:] + result.stderr[-4000:]
    assert not result.timed_out, "the job hung\n" + everything
    assert result.returncode == 0 and "the job went on" in result.stdout and "WRONG" not in result.stdout, everything
    return int(re.search(r"^child (\d+)$", result.stdout, re.MULTILINE)[1])


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("way", ["exit", "_exit", "tidy", "initialized"])
def test_a_child_that_leaves_does_no_harm(fork, way, mpi):
    result = fork(way, mpi)
    assert child(result) == 0, result.stderr
    assert "mpisec:" not in result.stderr


@pytest.mark.parametrize("way", ["exit", "tidy"])
def test_the_same_with_several_ranks_on_a_node(fork, way):
    """The ranks of a node share memory for collectives, too."""
    result = fork(way, "mpich-5", ranks=4)
    assert child(result) == 0, result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
@pytest.mark.parametrize("way", ["exec", "vfork", "system", "popen", "posix_spawn"])
def test_ordinary_programs_can_be_started(fork, way, mpi):
    """They are preloaded with MPIsec, too: the environment says so."""
    result = fork(way, mpi)
    assert child(result) == 0, result.stderr
    assert result.stdout.count("from the child") == 1 and "mpisec:" not in result.stderr


@pytest.mark.parametrize("mpi,way", [(mpi, way) for mpi in MPIS for way in ("send", "allreduce", "probe")] + [
    ("mpich-5", way) for way in ("large", "isend", "spawn", "init", "finalize")])
def test_a_child_that_calls_mpi_is_shut(fork, way, mpi):
    result = fork(way, mpi)
    assert child(result) == 1, result.stderr
    assert result.stderr.count(SENTENCE) == 1 and "the child's call returned" not in result.stderr


@pytest.mark.parametrize("way", ["send", "raw", "raw-large"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_no_library_seals_under_wiped_keys(cluster, fork, library, way, tmp_path):
    """S4, also where the child was made without fork(): a key state tells that it was wiped. Nothing of the child's reaches the peer, who
    would take it for a forged message."""
    with cluster(2).capture(tmp_path / "pcap") as capture:
        result = fork(way, "mpich-5", env={"MPISEC_AEAD": library})
    assert child(result) == 1, result.stderr
    assert "the child's call returned" not in result.stderr and "integrity" not in result.stderr
    assert count(capture.streams(), SENT) == 0


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_the_stall_report_hints_at_forks(fork, mpi):
    result = fork("stall", mpi, env={"MPISEC_STALL_TIME": "1"})
    assert child(result) == 0
    reports = [line for line in result.stderr.splitlines() if "stalled: waiting in" in line and "rank 0 " in line.split("stalled")[0]]
    assert reports and all("this process has forked 1 time since MPI_Init" in line for line in reports), result.stderr
    others = [line for line in result.stderr.splitlines() if "stalled: waiting in" in line and line not in reports]
    assert not any("has forked" in line for line in others)


PYTHON = """
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
assert MPI.Is_initialized()
other = 1 - world.rank
def exchange():
    for i in range(50):
        assert world.sendrecv(("hello", i, world.rank), other, source=other) == ("hello", i, other)
exchange()
copy = world.Dup()
if world.rank == 0:
    child = os.fork()
    if child == 0:
        sys.exit(0)
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    assert os.popen("echo fine").read() == "fine\\n"
exchange()
if world.rank == 0:
    print("the job went on", flush=True)
"""


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_child_of_python_that_exits(run, mpi_python, mpi):
    """mpi4py finalizes MPI on the way out where MPI is up: in a child it is not."""
    result = run([mpi_python(mpi), "-c", PYTHON], nodes=2, ranks=2, mpi=mpi, timeout=60)
    assert child(result) == 0, result.stderr
    assert "mpisec:" not in result.stderr


USES_THE_NUMBERS_AGAIN = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(void) {
    syscall(SYS_close_range, 3u, ~0u, 0u); /* past the C library's close() */
    for (int i = 0; i < 100; ++i) {
        char name[] = "/tmp/mpisec-fork-XXXXXX", byte = 'x';
        int file = mkstemp(name);
        struct iovec piece = {&byte, 1};
        if (file < 0 || unlink(name) != 0 || writev(file, &piece, 1) != 1 || lseek(file, 0, SEEK_END) != 1) return 3;
    }
    return 0;
}

int main(int argc, char** argv) {
    int rank, status = -1, got = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pid_t made = fork();
    if (made == 0) _exit(child());
    waitpid(made, &status, 0);
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d: child ended with %d, got %d\n", rank, status, got);
    return MPI_Finalize();
}
"""


@pytest.mark.parametrize("mpi", ["openmpi-5", "mpich-4"])
def test_a_child_uses_numbers_of_connections_again(compile_mpi, run, mpi):
    """A child's files are its own, though authenticated connections of its parent had their numbers; and its parent goes on."""
    result = run([compile_mpi(USES_THE_NUMBERS_AGAIN, mpi)], nodes=2, ranks=2, mpi=mpi)
    assert sorted(result.check().stdout.split("\n"))[1:] == ["rank 0: child ended with 0, got 1", "rank 1: child ended with 0, got 0"]
