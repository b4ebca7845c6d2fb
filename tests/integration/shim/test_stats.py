"""MPISEC_STATS=json: a file that cannot be written whole is told of, and the job goes on."""

import json

MESSAGE = """
#include <mpi.h>
int main(int argc, char** argv) {
    int rank, number = 7;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) MPI_Send(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
"""


def test_a_full_file_system(run, compile_mpi, tmp_path):
    """What one rank cannot write it says, once the file is closed; the other rank's file is whole."""
    (tmp_path / "stats.0").symlink_to("/dev/full")
    result = run([compile_mpi(MESSAGE, "mpich-5")], env={"MPISEC_STATS": f"json:{tmp_path}/stats.%r"})
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stderr.count(f"MPISEC_STATS: cannot write {tmp_path}/stats.") == 1, result.stderr
    assert f"{tmp_path}/stats.0" in result.stderr
    assert json.loads((tmp_path / "stats.1").read_text())["open_small"]["messages"] >= 1
