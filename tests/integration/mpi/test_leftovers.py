"""M14: after MPI_Finalize nothing of MPIsec's is left in the process, and after the job nothing on the nodes."""

import re
from collections import Counter

import pytest
from mpi_programs import YIELD, build


def traces(run, compile_mpi, mpi, plain, workers="2"):
    """Counter of (rank, kind, what) that ranks still had after MPI_Finalize."""
    app = build(compile_mpi, mpi, "leftovers.c", ["harness.c"])
    env = YIELD if plain else YIELD | {"MPISEC_WORKERS": workers, "MPISEC_STALL_TIME": "30"}
    result = run([app], nodes=2, ranks=4, mpi=mpi, plain=plain, timeout=60, env=env)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
    assert result.stdout.count("leftovers: rank") == 4 and not result.left_over, result.left_over
    found = re.findall(r"^left (\d+) (\w+) (.*)$", result.stdout, re.MULTILINE)
    # Inode numbers and process ids differ, and whether the file's last user has removed its name yet.
    numbers = r"[0-9a-f]*\d[0-9a-f]*|(?<=[#_.])[0-9a-f]+(?=[#_.])"
    return Counter((rank, kind, re.sub(numbers, "#", what.removesuffix(" (deleted)"))) for rank, kind, what in found)


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_nothing_left_after_finalize(run, compile_mpi, mpi):
    """M14: threads, open files, shared mappings and names in /dev/shm after MPI_Finalize are those of the plain program."""
    plain, sealed = traces(run, compile_mpi, mpi, True), traces(run, compile_mpi, mpi, False)
    assert sum(plain.values()) >= 4, "the program did not list its threads"
    extra = sealed - plain
    assert not extra, f"more than plain: {sorted(extra.items())}"


def test_nothing_left_on_the_nodes(cluster, run, compile_mpi):
    """M14: after a job the nodes' /dev/shm and temporary directories hold nothing that was not there before."""
    nodes = cluster(2)
    # The machine's /tmp is everybody's: other tests may have directories there at the same time.
    of_tests = "mpisec-(aead|below|lab|new|nonces|programs)-"
    listing = ["sh", "-c", f"ls -A /dev/shm; ls -A \"$TMPDIR\"; ls -A /tmp | grep -i mpisec | grep -vE '^{of_tests}'"]
    before = [nodes.execute(node, listing).stdout for node in range(2)]
    traces(run, compile_mpi, "mpich-5", False)
    assert [nodes.execute(node, listing).stdout for node in range(2)] == before
