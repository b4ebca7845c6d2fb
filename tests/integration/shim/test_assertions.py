"""Hints by which a program asserts something of its own calls (S2, M12): the MPI library is not told, because MPIsec counts on the order of messages,
and receives with room to spare."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WAYS = ["set_info", "dup_with_info", "split_type", "dist_graph_create_adjacent", "dist_graph_create"]
WAYS_OF_MPI_4 = ["idup_with_info", "create_from_group"]


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_the_library_does_not_hear_of_assertions(run, compile_mpi, mpi):
    app = compile_mpi(HERE / "assertions.c", mpi, flags=["-std=gnu11"])
    ran = run([app], ranks=4, mpi=mpi)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert "=true" not in ran.stdout, ran.stdout
    ways = WAYS if mpi.startswith("openmpi") else WAYS + WAYS_OF_MPI_4  # Open MPI 5 says MPI 3.1
    fine = re.findall(r"^\d \w+ fine$", ran.stdout, re.MULTILINE)
    assert sorted(fine) == sorted(f"{rank} {way} fine" for way in ways for rank in range(4)), ran.stdout


def test_plain_it_does(run, compile_mpi):
    """Else the test above shows nothing."""
    ran = run([compile_mpi(HERE / "assertions.c", "openmpi-5", flags=["-std=gnu11"])], ranks=4, mpi="openmpi-5", plain=True)
    assert "mpi_assert_allow_overtaking=true" in ran.check().stdout


def test_the_library_answers_in_the_hints(run, compile_mpi):
    """MPI_COMM_TYPE_HW_UNGUIDED: what the hardware is that divides the ranks of a node, with assertions among the hints and without."""
    app = compile_mpi(HERE / "assertions.c", "mpich-4", flags=["-std=gnu11"])
    ran = run([app], nodes=2, ranks=4, mpi="mpich-4", launcher=["-bind-to", "core"]).check()
    found = sorted(re.findall(r"^(\d) found (.*)$", ran.stdout, re.MULTILINE))
    assert sorted(re.findall(r"^(\d) found-with-assertions (.*)$", ran.stdout, re.MULTILINE)) == found
    if not found:
        pytest.skip("the two ranks of a node are on one core here: nothing divides them")
    assert [rank for rank, _ in found] == list("0123")
