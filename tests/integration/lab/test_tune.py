"""mpisec tune measures on lab nodes, and with a launcher of the user's."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))

from mpisec_bench import tune as bench_tune
from mpisec_lab import mpis, places
from mpisec_lab.errors import LabError


def tune(*options, timeout=240):
    command = [places.find_mpisec(), "tune", "--nodes", "2", "--ranks-per-node", "1", "--size", "64", *options]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, check=False)


def test_on_lab_nodes(lab, tmp_path):
    """Every algorithm of a collective is measured; the table made of it is one that jobs take."""
    times, table = tmp_path / "times.json", tmp_path / "selection.toml"
    ran = tune("--collective", "exscan,neighbor_allgather", "--keep-times", times, "-o", table)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(times.read_text())["times"]
    assert {row["collective"] for row in rows} == {"exscan", "neighbor_allgather"}
    assert all(row["seconds"] > 0 and row["nodes"] == 2 and row["ranks_per_node"] == 1 and row["bytes"] == 64 for row in rows)
    fastest = min((row for row in rows if row["collective"] == "exscan"), key=lambda row: row["seconds"])
    rules = tomllib.loads(table.read_text())["rule"]
    assert [rule["algorithm"] for rule in rules if rule["collective"] == "exscan"] == [fastest["algorithm"]]
    made_by = "mpisec tune --mpi mpich-5 --nodes 2 --ranks-per-node 1 --most-ranks 512 --size 64 --collective exscan,neighbor_allgather"
    assert f"#   {made_by}\n" in table.read_text()


@pytest.mark.slow
def test_messages_on_lab_nodes(lab, tmp_path):
    """Every way to cut them is measured, and the table is one that jobs take."""
    times, table = tmp_path / "times.json", tmp_path / "selection.toml"
    ran = tune("--collective", "messages", "--keep-times", times, "-o", table, timeout=900)
    assert ran.returncode == 0, ran.stderr
    rows = json.loads(times.read_text())["messages"]
    assert len({(row["threshold"], row["segment"]) for row in rows}) == 14 and all(row["ratio"] > 0 for row in rows)
    assert tomllib.loads(table.read_text())["rule"] == []
    environment = {**os.environ, "MPISEC_TUNING": str(table)}
    told = subprocess.run([places.find_mpisec(), "doctor"], env=environment, capture_output=True, text=True, check=False).stdout
    assert f"as {table} says" in told


def test_a_launcher_that_is_not_there():
    ran = tune("--collective", "barrier", "--mpicc", mpis.find_mpi("mpich-5").compiler_for("c")[0], "--launch", "nope {ranks}")
    assert ran.returncode == 1 and "mpisec tune: --launch: cannot start nope: No such file or directory" in ran.stderr, ran.stderr


def test_ranks_that_are_not_where_they_should_be(tmp_path):
    """Said before anything is measured: on one node nothing would be sealed."""
    mpich = mpis.find_mpi("mpich-5")
    key = tmp_path / "key"
    subprocess.run([places.find_mpisec(), "key", "new", key], check=True, capture_output=True)
    launcher = f"env MPISEC_KEY_FILE={key} {mpich.mpiexec} -n {{ranks}}"
    ran = tune("--collective", "barrier", "--mpicc", mpich.compiler_for("c")[0], "--launch", launcher, "--keep-times", tmp_path / "times.json")
    assert ran.returncode == 1 and "--launch put 2 ranks on 1 node(s), not on 2" in ran.stderr, ran.stderr
    assert "barrier dissemination" not in ran.stderr and not (tmp_path / "times.json").exists()


@pytest.mark.parametrize("option", ["--keep-times", "-o"])
def test_files_that_cannot_be_written_are_said_first(option):
    ran = tune("--collective", "barrier", option, "/proc/none/file")
    assert ran.returncode == 1 and "mpisec tune: /proc/none/file cannot be written" in ran.stderr and "nodes x" not in ran.stderr, ran.stderr


class _Failing:
    """Jobs of which the ninth fails."""

    def __init__(self):
        self.left = 8

    def compile(self, source):
        return source

    def run(self, words, *_):
        self.left -= 1
        if self.left < 0:
            raise LabError("no more nodes")
        return '{"bytes": 1, "time_with_barrier_us": 5}'

    def close(self):
        pass


def test_what_was_measured_is_kept_when_a_job_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(bench_tune, "_jobs", lambda _task: _Failing())
    file = tmp_path / "times.json"
    task = {"trials": {"barrier": ["dissemination", "linear"], "bcast": ["binomial"]}, "messages": None, "nodes": [2], "ranks_per_node": [1],
            "most_ranks": 8, "sizes": [64], "launch": "", "mpicc": "", "mpi": "mpich-5", "keep_times": str(file), "output": "", "collectives": []}
    with pytest.raises(LabError, match=f"no more nodes; no table was written, but what was measured is in {file}"):
        bench_tune.measure_all(task, file)
    assert {row["algorithm"] for row in json.loads(file.read_text())["times"]} == {"dissemination", "linear"}


@pytest.mark.slow
def test_with_a_launcher(lab, tmp_path):
    """{ranks} and {nodes} are put in; what the launcher says when it fails is shown."""
    key = tmp_path / "key"
    subprocess.run([places.find_mpisec(), "key", "new", key], check=True, capture_output=True)
    launcher = f"python3 -m mpisec_lab run --plain --nodes {{nodes}} -n {{ranks}} env MPISEC_KEY_FILE={key}"
    mpicc = mpis.find_mpi("mpich-5").compiler_for("c")[0]
    ran = tune("--collective", "barrier", "--mpicc", mpicc, "--launch", launcher)
    assert ran.returncode == 0, ran.stderr
    assert {rule["collective"] for rule in tomllib.loads(ran.stdout)["rule"]} == {"barrier"}
    ran = tune("--collective", "barrier", "--mpicc", mpicc, "--launch", "false {ranks}")
    assert ran.returncode == 1 and "false 2 env " in ran.stderr
