"""mpisec profile: what a plain run counts, and what it predicts of the sealed one, compared with what MPISEC_STATS measures there."""

import json
import subprocess

import pytest

from mpisec_lab import places

# Point-to-point of three sizes in every mode, persistent, one-sided, collectives on the world and on halves.
PROGRAM = """
#include <mpi.h>
#include <stdlib.h>
enum { large = 300000 };
int main(int argc, char** argv) {
    int rank, size, sum;
    char* data = calloc(64, large);
    char* other = calloc(64, large);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const int sizes[] = {0, 100, 20000, large};
    for (int i = 0; i < 40; ++i) {
        const int n = sizes[i % 4];
        MPI_Request requests[2];
        MPI_Irecv(other, n, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[0]);
        if (i & 4) MPI_Issend(data, n, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[1]);
        else MPI_Isend(data, n, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(data, 50, MPI_INT, right, 1, other, 50, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Request request;
    MPI_Send_init(data, 1000, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 10; ++i) {
        MPI_Start(&request);
        MPI_Recv(other, 1000, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int i = 0; i < 20; ++i) {
        MPI_Bcast(data, 30000, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Allreduce(data, other, 500, MPI_DOUBLE, MPI_SUM, half);
        MPI_Alltoall(data, 4000, MPI_BYTE, other, 4000, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allgather(data, 100, MPI_INT, other, 100, MPI_INT, half);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Comm_free(&half);
    MPI_Win win;
    MPI_Win_create(other, 64 * large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 10; ++i) MPI_Put(data, 20000, MPI_BYTE, right, 20000 * i, 20000, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 10; ++i) MPI_Get(data, 10000, MPI_BYTE, left, 0, 10000, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
"""
CLASSES = ("point_to_point", "collective", "one_sided")


def test_a_file_that_cannot_be_written_is_said_first(cluster, compile_mpi):
    """And the prediction is printed all the same."""
    app = compile_mpi("""#include <mpi.h>
        #include <stdio.h>
        int main(void) { fprintf(stderr, "program\\n"); MPI_Init(0, 0); return MPI_Finalize(); }""", "mpich-5")
    result = cluster(2).run([places.find_mpisec(), "profile", "-o", "/nope/x", "--", app], ranks=2, mpi="mpich-5", plain=True)
    first = "mpisec profile: cannot write /nope/x: No such file or directory"
    assert result.returncode != 0 and result.stderr.index(first) < result.stderr.rindex("program\n"), result.stderr
    assert "2 ranks on 2 nodes ran" in result.stderr and result.stderr.count("cannot write") == 2, result.stderr
    assert "    Not in it: start-up" in result.stderr
    alone = cluster(2).run([places.find_mpisec(), "profile", app], nodes=1, ranks=1, mpi="mpich-5", plain=True).check()
    assert "1 rank on one node ran" in alone.stderr


def profiled(cluster, app, mpi, kept, ranks=4):
    """Runs it plain below `mpisec profile`; returns (the Result, the prediction)."""
    command = [places.find_mpisec(), "profile", "-o", kept, "--", app]
    result = cluster(2).run(command, ranks=ranks, mpi=mpi, plain=True, timeout=120)
    assert result.returncode == 0, result.stderr[-3000:]
    asked = subprocess.run([places.find_mpisec(), "profile", "--json", "--report", kept], capture_output=True, text=True, check=True)
    return result, json.loads(asked.stdout)


def measured(run, app, mpi, directory):
    result = run([app], ranks=4, mpi=mpi, env={"MPISEC_STATS": f"json:{directory}/stats.%r", "MPISEC_PIPELINE_THRESHOLD": "auto"})
    assert result.returncode == 0, result.stderr[-3000:]
    files = [directory / f"stats.{rank}" for rank in range(4)]
    asked = subprocess.run([places.find_mpisec(), "stats", "--json", *files], capture_output=True, text=True, check=True)
    return json.loads(asked.stdout)["sum"]["traffic"]


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_the_prediction_is_near_to_what_is_measured(cluster, run, compile_mpi, tmp_path, mpi):
    """Messages and bytes; of the time only that there is one, because others use this machine, too."""
    app = compile_mpi(PROGRAM, mpi)
    said, prediction = profiled(cluster, app, mpi, tmp_path / "kept.json")
    assert said.stderr.count("a plain run, in which nothing is sealed") == 1 == said.stderr.count("4 ranks on 2 nodes ran"), said.stderr
    assert "in all" in said.stderr and prediction["nodes"] == 2 and len(prediction["ranks"]) == 4
    traffic = measured(run, app, mpi, tmp_path)
    for name in CLASSES:
        for direction in ("seal", "open"):
            predicted, seen = prediction["sum"][name][direction], traffic[name][direction]
            assert 0.9 < predicted["bytes"] / seen["bytes"] < 1.1, (name, direction, predicted, seen)
            if name != "one_sided":  # short operations travel together, and fences tell each other how many there were
                assert 0.9 < predicted["messages"] / seen["messages"] < 1.1, (name, direction, predicted, seen)
            assert predicted["nanoseconds"] > 0
    assert prediction["sum"]["point_to_point"]["seal"]["bytes"] == traffic["point_to_point"]["seal"]["bytes"]


def test_of_one_node_nothing(cluster, compile_mpi, tmp_path):
    command = [places.find_mpisec(), "profile", "--", compile_mpi(PROGRAM, "mpich-5")]
    result = cluster(1).run(command, ranks=2, plain=True)
    assert result.returncode == 0 and "2 ranks on one node ran" in result.stderr, result.stderr
    assert "nothing: all ranks are on one node" in result.stderr, result.stderr


def test_the_status_of_the_program(cluster, compile_mpi):
    """And nothing is left of what was counted."""
    app = compile_mpi("#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); MPI_Finalize(); return 7; }", "mpich-5")
    alone = subprocess.run([places.find_mpisec(), "profile", app], capture_output=True, text=True, check=False)
    assert alone.returncode == 7 and "nothing: all ranks are on one node" in alone.stderr, alone.stderr
    missing = subprocess.run([places.find_mpisec(), "profile", "./no-such-program"], capture_output=True, text=True, check=False)
    assert missing.returncode == 1 and "no-such-program" in missing.stderr


def test_a_python_program(cluster, mpi_python, tmp_path):
    """Whose MPI is loaded by a module, for itself."""
    program = tmp_path / "job.py"
    program.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.bcast(b'x' * 5000)\n")
    for mpi in ("mpich-5", "openmpi-5"):
        kept = tmp_path / mpi
        command = [places.find_mpisec(), "profile", "-o", kept, mpi_python(mpi), program]
        result = cluster(2).run(command, ranks=2, mpi=mpi, plain=True, timeout=60)
        assert result.returncode == 0, result.stderr[-3000:]
        sent = sum(row[-1] for rank in json.loads(kept.read_text()) for row in rank["collectives"])
        assert sent > 5000


def test_what_no_profile_is(tmp_path):
    file = tmp_path / "other"
    for text in ("", "{}", "[]", '[{"node": "a"}]', "[1]"):
        file.write_text(text)
        asked = subprocess.run([places.find_mpisec(), "profile", "--report", file], capture_output=True, text=True, check=False)
        assert asked.returncode == 1 and "is not a file that `mpisec profile` wrote" in asked.stderr, text
