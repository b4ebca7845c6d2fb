"""MPISEC_STATS: what each rank writes, what `mpisec stats` makes of it, and a file that cannot be written whole."""

import json
import subprocess

from mpisec_lab import places

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


def test_ranks_are_summed_up(run, compile_mpi, tmp_path):
    result = run([compile_mpi(MESSAGE, "mpich-5")], env={"MPISEC_STATS": f"json:{tmp_path}/stats.%r", "MPISEC_AEAD": "openssl:aes-128-gcm"})
    assert result.returncode == 0, result.stderr[-3000:]
    files = [tmp_path / "stats.1", tmp_path / "stats.0"]
    asked = subprocess.run([places.find_mpisec(), "stats", "--json", *files], capture_output=True, text=True, check=True)
    summary = json.loads(asked.stdout)
    ranks = [json.loads(file.read_text()) for file in reversed(files)]
    assert summary["ranks"] == ranks and [rank["node"] for rank in ranks] == ["node0", "node1"]
    assert {rank["library"] for rank in ranks} == {"aes-128-gcm by openssl"}
    assert ranks[0]["seal_small"]["messages"] == ranks[1]["open_small"]["messages"] >= 1  # MPIsec's own at the end are counted too
    for kind, counters in summary["sum"].items():
        assert counters == {name: sum(rank[kind][name] for rank in ranks) for name in counters}
    table = subprocess.run([places.find_mpisec(), "stats", *files], capture_output=True, text=True, check=True).stdout
    assert [line.split()[:2] for line in table.splitlines()[1:3]] == [["0", "node0"], ["1", "node1"]]
    sealed = next(line for line in table.splitlines() if line.startswith("sealed  "))
    assert sealed.split()[1:3] == [str(summary["sum"]["seal_small"][counter]) for counter in ("messages", "bytes")]


def test_what_is_no_statistics(tmp_path):
    (tmp_path / "other").write_text('{"rank": 1}')
    for file in (tmp_path / "other", tmp_path / "missing", "/dev/null"):
        asked = subprocess.run([places.find_mpisec(), "stats", file], capture_output=True, text=True, check=False)
        assert asked.returncode == 1 and f"{file} is no file of a rank" in asked.stderr
