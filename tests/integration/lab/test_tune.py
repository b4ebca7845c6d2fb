"""mpisec tune measures on lab nodes, and with a launcher of the user's."""

import json
import os
import subprocess
import tomllib

import pytest

from mpisec_lab import mpis, places


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
    assert ran.returncode == 1 and "false 2 env MPISEC_BARRIER=dissemination" in ran.stderr
