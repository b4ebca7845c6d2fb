"""MPISEC_STATS: what each rank writes, at the end and while it runs, what `mpisec stats` makes of it, the job's table, and a file that
cannot be written whole."""

import json
import os
import re
import subprocess
import threading
import time

import pytest

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

# One thing of each class, of sizes of its own: 1000 and 300,000 bytes, 2000, 3000, 4000 in partitions of 2000.
EACH_CLASS = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
    int rank, flag = 0;
    char* data = calloc(1, 300000);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int size = 1000; size <= 300000; size += 299000)
        if (rank == 0) MPI_Send(data, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        else MPI_Recv(data, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(data, 2000, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Win win;
    MPI_Win_create(data, 100000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    if (rank == 0) MPI_Put(data, 3000, MPI_BYTE, 1, 0, 3000, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Request request;
    if (rank == 0) MPI_Psend_init(data, 2, 2000, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else MPI_Precv_init(data, 2, 2000, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    if (rank == 0) MPI_Pready_range(0, 1, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, 100 * rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    return MPI_Finalize();
}
"""

# Until a file is there.
GOES_ON = """
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
    int rank, there = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (!there) {
        if (rank == 0) there = access(argv[1], F_OK) == 0;
        MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(20000);
    }
    return MPI_Finalize();
}
"""


def stats(*words):
    return subprocess.run([places.find_mpisec(), "stats", *words], capture_output=True, text=True, check=True).stdout


def test_a_file_that_cannot_be_written(run, compile_mpi, tmp_path):
    """What one rank cannot write it says; the other rank's file is whole."""
    (tmp_path / "stats.0").mkdir()
    result = run([compile_mpi(MESSAGE, "mpich-5")], env={"MPISEC_STATS": f"json:{tmp_path}/stats.%r"})
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stderr.count(f"MPISEC_STATS: cannot write {tmp_path}/stats.") == 1, result.stderr
    assert f"{tmp_path}/stats.0: Is a directory" in result.stderr
    assert json.loads((tmp_path / "stats.1").read_text())["open_small"]["messages"] >= 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["stats.0", "stats.1"]


def test_the_directory_is_made(run, compile_mpi, tmp_path):
    result = run([compile_mpi(MESSAGE, "mpich-5")], env={"MPISEC_STATS": f"json:{tmp_path}/new/%r"})
    assert result.returncode == 0 and "MPISEC_STATS" not in result.stderr, result.stderr[-3000:]
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["0", "1"]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("interval", ["0", "0.1"])
def test_a_directory_that_cannot_be_made_is_reported_when_the_job_starts(run, compile_mpi, tmp_path, interval):
    program = MESSAGE.replace("if (rank == 0) MPI_Send", 'fprintf(stderr, "started\\n"); sleep(1); if (rank == 0) MPI_Send')
    app = compile_mpi("#include <stdio.h>\n#include <unistd.h>\n" + program, "mpich-5")
    result = run([app], env={"MPISEC_STATS": f"json:{tmp_path}/no/such/%r", "MPISEC_STATS_INTERVAL": interval})
    assert result.returncode == 0, result.stderr[-3000:]
    said = f"MPISEC_STATS: cannot make the directory {tmp_path}/no/such/: No such file or directory"
    assert result.stderr.count("MPISEC_STATS: ") == result.stderr.count(said) == 2, result.stderr
    assert result.stderr.rindex(said) < result.stderr.rindex("started"), result.stderr


def test_an_interval_without_files_is_reported(run, compile_mpi):
    app = compile_mpi(MESSAGE, "mpich-5")
    result = run([app], env={"MPISEC_STATS": "1", "MPISEC_STATS_INTERVAL": "1"})
    assert result.returncode == 0 and result.stderr.count("MPISEC_STATS_INTERVAL has no effect without MPISEC_STATS=json:PATH") == 1, result.stderr


@pytest.mark.parametrize("setting", ["MPISEC_STATS", "MPISEC_TRACE"])
def test_a_job_on_one_node_says_why_there_are_no_figures(run, compile_mpi, tmp_path, setting):
    app = compile_mpi(MESSAGE, "mpich-5")
    asked = run([app], nodes=1, env={setting: f"json:{tmp_path}/it"})
    assert asked.returncode == 0 and list(tmp_path.iterdir()) == [], asked.stderr[-3000:]
    said = f"mpisec: rank 0 (node0): {setting}: all ranks of this job are on this node, so MPIsec seals nothing"
    assert asked.stderr.count("mpisec: ") == asked.stderr.count(said) == 1, asked.stderr
    assert "mpisec" not in run([app], nodes=1).stderr


@pytest.mark.parametrize("interval", ["0", "60"])
def test_what_others_have_put_there(run, compile_mpi, tmp_path, interval):
    """A link is not followed, and a FIFO that nobody reads is not waited for."""
    kept = tmp_path / "kept"
    kept.write_text("kept")
    (tmp_path / "stats.0").symlink_to(kept)
    os.mkfifo(tmp_path / "stats.1")
    result = run([compile_mpi(MESSAGE, "mpich-5")], env={"MPISEC_STATS": f"json:{tmp_path}/stats.%r", "MPISEC_STATS_INTERVAL": interval})
    assert result.returncode == 0, result.stderr[-3000:]
    assert kept.read_text() == "kept"
    for rank in range(2):
        assert json.loads((tmp_path / f"stats.{rank}").read_text())["ended"]


def test_ranks_are_summed_up(run, compile_mpi, tmp_path):
    result = run([compile_mpi(MESSAGE, "mpich-5")], env={"MPISEC_STATS": f"json:{tmp_path}/stats.%r", "MPISEC_AEAD": "openssl:aes-128-gcm"})
    assert result.returncode == 0, result.stderr[-3000:]
    files = [tmp_path / "stats.1", tmp_path / "stats.0"]
    summary = json.loads(stats("--json", *files))
    assert summary == json.loads(stats("--json", tmp_path)), "a directory stands for its files"
    ranks = [json.loads(file.read_text()) for file in reversed(files)]
    assert summary["ranks"] == ranks and [rank["node"] for rank in ranks] == ["node0", "node1"]
    assert {rank["library"] for rank in ranks} == {"aes-128-gcm by openssl"} and all(rank["ended"] for rank in ranks)
    assert ranks[0]["seal_small"]["messages"] == ranks[1]["open_small"]["messages"] >= 1  # MPIsec's own at the end are counted too
    traffic = summary["sum"].pop("traffic")
    for kind, counters in summary["sum"].items():
        assert counters == {name: sum(rank[kind][name] for rank in ranks) for name in counters}
    for counter in ("messages", "bytes", "nanoseconds"):
        by_kind = sum(summary["sum"][f"seal_{kind}"][counter] for kind in ("small", "segment", "collective"))
        assert sum(of["seal"][counter] for of in traffic.values()) == by_kind
    table = stats(*files)
    assert [line.split()[:2] for line in table.splitlines()[1:3]] == [["0", "node0"], ["1", "node1"]]
    sealed = next(line for line in table.splitlines() if line.startswith("sealed  "))
    assert sealed.split()[1:3] == [str(summary["sum"]["seal_small"][counter]) for counter in ("messages", "bytes")]


@pytest.mark.parametrize("workers", [0, 1])
def test_each_class_of_calls_has_its_cost(run, compile_mpi, tmp_path, workers):
    """Also the time of what worker threads seal."""
    env = {"MPISEC_STATS": f"json:{tmp_path}/stats.%r", "MPISEC_WORKERS": str(workers), "MPISEC_SEGMENT": "64K"}
    result = run([compile_mpi(EACH_CLASS, "mpich-5"), tmp_path / "file"], env=env)
    assert result.returncode == 0, result.stderr[-3000:]
    sums = json.loads(stats("--json", tmp_path / "stats.0", tmp_path / "stats.1"))["sum"]["traffic"]
    for direction in ("seal", "open"):
        bytes_ = {name: traffic[direction]["bytes"] for name, traffic in sums.items()}
        assert bytes_["point_to_point"] == 301000 and bytes_["partitioned"] == 4000 and bytes_["collective"] == 2000, bytes_
        assert 3000 <= bytes_["one_sided"] < 5000 and bytes_["file"] > 0 and bytes_["own"] > 0, bytes_
        assert all(traffic[direction]["nanoseconds"] > 0 for traffic in sums.values())
        assert sums["point_to_point"][direction]["messages"] == 1 + 5  # segments of 64 KiB


@pytest.mark.parametrize("table, parts", [
    ("[[message]]\nbytes = [0, inf]\nsegment = inf\n", 2), ("[[message]]\nbytes = [300000, 300000]\nsegment = 65536\n", 5),
    ("threshold = 131072\n[[message]]\nbytes = [0, inf]\nsegment = 65536\n", 4), ("[[message]]\nbytes = [300001, inf]\nsegment = 1024\n", 3)])
def test_messages_are_cut_as_the_table_says(run, compile_mpi, tmp_path, table, parts):
    """The one of 300,000 bytes; with the threshold of tests, and without a rule, in parts of 64 KiB, 128 KiB and the rest."""
    file = tmp_path / "table.toml"
    file.write_text(table)
    env = {"MPISEC_STATS": f"json:{tmp_path}/stats.%r", "MPISEC_TUNING": str(file), "MPISEC_WORKERS": "0"}
    if "threshold" in table:
        env["MPISEC_PIPELINE_THRESHOLD"] = "auto"
    else:
        env["MPISEC_AEAD"] = "cryptopp:aes-256-gcm"  # slow everywhere: segments of 128 KiB
    result = run([compile_mpi(EACH_CLASS, "mpich-5"), tmp_path / "file"], env=env)
    assert result.returncode == 0, result.stderr[-3000:]
    sums = json.loads(stats("--json", tmp_path / "stats.0", tmp_path / "stats.1"))["sum"]["traffic"]
    assert [sums["point_to_point"][direction]["messages"] for direction in ("seal", "open")] == [1 + parts] * 2


def test_the_job_has_one_table(run, compile_mpi, tmp_path):
    """By rank 0, of all ranks; `ranks` prints theirs, too."""
    app = compile_mpi(EACH_CLASS, "mpich-5")
    for setting, tables in (("1", 0), ("ranks", 2)):
        result = run([app, tmp_path / "file"], env={"MPISEC_STATS": setting})
        assert result.returncode == 0, result.stderr[-3000:]
        assert result.stderr.count("statistics of 2 ranks") == 1 and result.stderr.count("sealed in segments") == tables, result.stderr
        rows = dict(re.findall(r"^ +(point-to-point|partitioned|collectives|one-sided|files) +(\d.*)$", result.stderr, re.MULTILINE))
        assert len(rows) == 5, result.stderr
        sealed, sealed_bytes, _, opened, opened_bytes, _, slowest = rows["point-to-point"].split()
        assert sealed == opened and sealed_bytes == opened_bytes == "301000" and float(slowest) > 0


def test_a_job_is_seen_while_it_runs(run, compile_mpi, tmp_path):
    stop, files = tmp_path / "stop", tmp_path / "stats"
    files.mkdir()
    env = {"MPISEC_STATS": f"json:{files}/%r", "MPISEC_STATS_INTERVAL": "0.2"}
    app, results = compile_mpi(GOES_ON, "mpich-5"), []
    job = threading.Thread(target=lambda: results.append(run([app, stop], env=env)))
    job.start()
    looks = []
    with subprocess.Popen([places.find_mpisec(), "stats", "--live", "--every", "0.3", files], stdout=subprocess.PIPE, text=True) as live:
        for line in live.stdout:
            looks += re.findall(r"^(\d) of (\d) ranks run, .*opened (\d+) messages", line)
            if len(looks) > 2 and looks[-1][0] == "2" and int(looks[-1][2]) > 0:
                stop.touch()
    job.join()
    assert results[0].returncode == 0 and live.returncode == 0, results[0].stderr[-3000:]
    assert looks[-1][:2] == ("0", "2"), looks
    assert sorted(file.name for file in files.iterdir()) == ["0", "1"]


def test_what_is_no_statistics(tmp_path):
    (tmp_path / "other").write_text('{"rank": 1}')
    for file in (tmp_path / "other", "/dev/null"):
        asked = subprocess.run([places.find_mpisec(), "stats", file], capture_output=True, text=True, check=False)
        assert asked.returncode == 1 and f"{file} is not a file that a rank wrote" in asked.stderr


def test_files_that_are_not_there(tmp_path):
    """--live waits for them, and says so once."""
    missing = f"there is no file or directory {tmp_path}/missing"
    asked = subprocess.run([places.find_mpisec(), "stats", tmp_path / "missing"], capture_output=True, text=True, check=False)
    assert asked.returncode == 1 and missing in asked.stderr
    with subprocess.Popen([places.find_mpisec(), "stats", "--live", "--every", "0.1", tmp_path / "missing"], stdout=subprocess.PIPE, text=True) as live:
        assert live.stdout.readline() == f"{missing} yet\n"
        time.sleep(0.5)
        live.kill()
        assert live.stdout.read().count("\n") == 1
