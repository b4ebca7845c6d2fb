"""mpisec bench on the lab: whole commands, their files, interruption and bad input."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpisec_bench import jobs
from mpisec_bench.schemes import PLAIN
from mpisec_lab import mpis, places
from mpisec_lab.errors import LabError


def _command(*words):
    return [str(places.find_mpisec()), "bench", *map(str, words)]


def _bench(*words, timeout=120, **variables):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the report needs this Python's matplotlib
    return subprocess.run(_command(*words), capture_output=True, text=True, timeout=timeout, check=False, env=os.environ | {"PATH": path} | variables)


def _measured(*words, file):
    ran = _bench(*words, "--rounds", 1, "-o", file)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(file.read_text())
    assert document["complete"] and document["conditions"]["raw_tcp_bits_per_second"] > 1e8
    return ran.stdout, document


def test_pingpong(lab, tmp_path):
    said, document = _measured("pingpong", "--sizes", "4,64K", "--blocks", 3, file=tmp_path / "r.json")
    assert [row["bytes"] for row in document["rows"]] == [4, 65536]
    assert all(row["scheme"] == "mpisec" and row["time_us"] > 0 and row["plain_us"] > 0 for row in document["rows"])
    assert "95 % interval" in said and "64K" not in said.splitlines()[2]
    assert document["command"] == "mpisec bench pingpong --sizes 4,64K --blocks 3 --rounds 1"


def test_jobs_as_they_are_launched(lab, tmp_path):
    """--apart: plain MPI in jobs of its own."""
    _, document = _measured("pingpong", "--apart", "--sizes", "512", "--blocks", 2, file=tmp_path / "r.json")
    assert [(row["scheme"], row["bytes"]) for row in document["rows"]] == [("mpisec", 512)] and document["rows"][0]["plain_us"] > 0


def test_fixed_ways_of_large_messages(lab, tmp_path):
    """`whole` leaves one segment beside the header's, `segments` more, beyond 128 KiB."""
    said, document = _measured("pingpong", "--sizes", "256K", "--blocks", 2, "--schemes", "whole,segments", file=tmp_path / "r.json")
    assert sorted(row["scheme"] for row in document["rows"]) == ["segments", "whole"]
    assert "whole" in said


@pytest.mark.parametrize("buffers, ways", [("single", "one"), ("single", "both"), ("multiple", "both")])
def test_several_pairs(lab, tmp_path, buffers, ways):
    _, document = _measured("mbw", "--pairs", "1,2", "--sizes", "1K", "--blocks", 2, "--no-pin", "--buffers", buffers, "--ways", ways, file=tmp_path / "r.json")
    assert [(row["pairs"], row["bytes"]) for row in document["rows"]] == [(1, 1024), (2, 1024)]
    assert document["title"].endswith(", a buffer each") == (buffers == "multiple")
    assert (" both ways," in document["title"]) == (ways == "both")


def test_partitioned_messages(lab, tmp_path):
    _, document = _measured("partitioned", "--sizes", "1K,600K", "--partitions", 4, "--blocks", 2, file=tmp_path / "r.json")
    beside = ["plain partitioned", "plain Isend", "sealed Isend"]
    assert [(row["what"], row["bytes"]) for row in document["rows"]] == [
        (f"partitioned / {name}", size) for name in beside for size in (1024, 614400)]
    assert all(row["plain_us"] > 0 for row in document["rows"])


def test_one_sided_operations(lab, tmp_path):
    _, document = _measured("rma", "--sizes", "8,64K", "--blocks", 2, file=tmp_path / "r.json")
    assert [(row["what"], row["bytes"]) for row in document["rows"]] == [
        (f"{operation} + flush", size) for operation in ("put", "get", "accumulate", "fetch_and_op", "64 puts")
        for size in ((8,) if operation == "fetch_and_op" else (8, 65536))]
    assert all(row["plain_us"] > 0 for row in document["rows"])


def test_files(lab, tmp_path):
    _, document = _measured("io", "--sizes", "256K", "--blocks", 2, "--directory", tmp_path, file=tmp_path / "r.json")
    assert [row["what"] for row in document["rows"]] == ["write", "read", "write-interleaved", "read-interleaved"]
    assert all(row["plain_us"] > 0 for row in document["rows"])
    assert not list(tmp_path.glob("mpisec-bench-io*"))


def test_files_are_in_a_directory_of_the_users_own(lab, tmp_path):
    """Another user of /tmp could put a link under a name that is known beforehand."""
    words = ("io", "--sizes", "64K", "--operations", "write", "--blocks", 20, "--rounds", 1, "--directory", tmp_path)
    run = subprocess.Popen(_command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seen = {}
    while run.poll() is None:
        for entry in tmp_path.glob("*"):
            with contextlib.suppress(FileNotFoundError):
                seen[entry.name] = entry.stat().st_mode
        time.sleep(0.002)
    assert run.returncode == 0 and seen, run.stderr.read()
    assert all(stat.S_ISDIR(mode) and stat.S_IMODE(mode) == 0o700 for mode in seen.values()), seen
    assert not list(tmp_path.glob("*"))


def test_algorithms_of_a_collective(lab, tmp_path):
    _, document = _measured("bcast", "--ranks", 2, "--sizes", "64", "--blocks", 2, "--algorithms", "auto,binomial", file=tmp_path / "r.json")
    assert [row["algorithm"] for row in document["rows"]] == ["auto", "binomial"]
    assert all(row["ratio_with_barrier"] > 0 for row in document["rows"])


def test_a_collective_with_counts(lab, tmp_path):
    for name in ("gather", "scatter", "allgather", "alltoall"):
        _, document = _measured(name, "--counts", "--ranks", 2, "--sizes", "64,300K", "--blocks", 2, file=tmp_path / "r.json")
        assert [(row["what"], row["bytes"]) for row in document["rows"]] == [(f"{name}v", 64), (f"{name}v", 307200)]
        assert document["title"] == f"{name}v, 2 nodes × 1"


def test_kernels_with_a_total(lab, tmp_path):
    _, document = _measured("kernels", "--kernels", "is,cg", file=tmp_path / "r.json")
    times = {row["what"]: row["time_us"] for row in document["rows"]}
    assert set(times) == {"is", "cg", "total"} and times["total"] == pytest.approx(times["is"] + times["cg"])


def test_startup(lab, tmp_path):
    _, document = _measured("startup", "--nodes", 2, "--ranks", 2, "--by", "init,session,spawn", file=tmp_path / "r.json")
    expected = ["MPI_Init", "and MPI_Barrier", "whole job", "MPI_Session_init to MPI_Barrier", "MPI_Comm_spawn to MPI_Barrier"]
    assert [row["what"] for row in document["rows"]] == expected


def test_an_overlay_beside_mpisec(lab, tmp_path):
    said, document = _measured("pingpong", "--schemes", "mpisec,vxlan", "--sizes", "1K", "--blocks", 2, file=tmp_path / "r.json")
    assert [row["scheme"] for row in document["rows"]] == ["mpisec", "vxlan"]
    vxlan = document["conditions"]["overlays"]["vxlan"]
    assert f"vxlan: {vxlan['data_plane']} ({vxlan['runs_in']}); one TCP connection reaches" in said
    assert vxlan["mtu"] < 1500 and vxlan["raw_tcp_bits_per_second"] > 1e8


def test_with_a_launcher(lab, tmp_path):
    """A site's own launcher, here the lab's, starts plain and sealed jobs."""
    key = tmp_path / "key"
    subprocess.run([places.find_mpisec(), "key", "new", key], check=True, capture_output=True)
    launcher = f"python3 -m mpisec_lab run --plain --nodes {{nodes}} -n {{ranks}} env MPISEC_KEY_FILE={key}"
    ran = _bench("allgather", "--ranks", 2, "--sizes", "64", "--blocks", 2, "--rounds", 1, "--launch", launcher,
                 "--mpicc", mpis.find_mpi("mpich-5").compiler_for("c")[0])
    assert ran.returncode == 0 and "allgather        64 mpisec" in ran.stdout, ran.stdout + ran.stderr


def test_a_launcher_that_is_not_there():
    mpicc = mpis.find_mpi("mpich-5").compiler_for("c")[0]
    ran = _bench("pingpong", "--launch", "nope -n {ranks}", "--mpicc", mpicc)
    assert ran.returncode == 1 and "--launch: cannot start nope: No such file or directory" in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_launched_job_that_does_not_end(monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "_JOB_SECONDS", 0.2)
    monkeypatch.chdir(tmp_path)
    launched = jobs.LaunchedJobs({"": "sh -c 'exec sleep 20' --"}, mpicc="cc")
    try:
        with pytest.raises(LabError, match=r"--launch: sh .*sleep 20.* did not end within 0\.2 seconds"):
            launched.run(["./app"], 2, 2, PLAIN)
    finally:
        launched.close()


def test_interrupted_and_resumed(lab, tmp_path):
    file = tmp_path / "r.json"
    words = ("pingpong", "--sizes", "1", "--blocks", 2, "--rounds", 7, "-o", file)
    run = subprocess.Popen(_command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    said, complaint = run.communicate(timeout=60)
    assert run.returncode == 130 and "--resume goes on" in complaint, complaint
    left = json.loads(file.read_text())
    assert not left["complete"] and 1 <= left["rows"][0]["rounds"] < 7 and "mpisec" in said
    again = _bench(*words, "--resume")
    assert again.returncode == 0, again.stderr
    whole = json.loads(file.read_text())
    assert whole["complete"] and whole["rows"][0]["rounds"] >= 6 and whole["started"] == left["started"]
    assert _bench("pingpong", "--sizes", "2", "-o", file, "--resume").returncode == 1


@pytest.mark.slow
def test_all_into_a_directory(lab, tmp_path):
    ran = _bench("all", "--quick", "--only", "crypto,bcast", "-o", tmp_path / "results")
    assert ran.returncode == 0, ran.stderr
    assert {file.name for file in (tmp_path / "results").iterdir()} == {"crypto.json", "bcast.json", "report.html"}
    crypto = json.loads((tmp_path / "results/crypto.json").read_text())
    chosen = [row for row in crypto["rows"] if row["chosen"] and row["cipher"] == "aes-128-gcm" and row["threads"] == 1]
    assert len(chosen) == len({row["bytes"] for row in crypto["rows"]}), "auto takes one library for each size"
    again = _bench("all", "--quick", "--only", "crypto", "-o", tmp_path / "results")
    assert again.returncode == 1 and "--resume" in again.stderr
    again = _bench("all", "--quick", "--only", "crypto,bcast", "-o", tmp_path / "results", "--resume")
    assert again.returncode == 0 and again.stdout.count("measured before") == 2


def test_all_asks_first_for_what_its_report_needs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['matplotlib'] = None\n")
    ran = _bench("all", "-o", tmp_path / "results", PYTHONPATH=str(tmp_path))
    assert ran.returncode == 1 and "the report needs matplotlib" in ran.stderr, ran.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("words", "told"), [
    (("pingpong", "--schemes", "ssh"), "knows no 'ssh'"),
    (("pingpong", "--sizes", "1X"), "is no number of bytes"),
    (("mbw", "--pairs", "0"), "is no list of numbers"),
    (("kernels", "--kernels", "ep"), "there is no kernel 'ep'"),
    (("pingpong", "--launch", "wireguard=mpiexec"), "lacks the command for plain and sealed jobs"),
    (("pingpong", "--launch", "mpiexec -n {rank}"), "--launch mpiexec -n {rank}: {ranks}, {nodes} and {each} are put in, nothing else"),
    (("pingpong", "--launch", "mpiexec {"), "--launch mpiexec {: {ranks}, {nodes} and {each} are put in"),
    (("pingpong", "--launch", "mpiexec '"), "--launch mpiexec ': no closing quotation"),
    (("pingpong", "--launch", ""), "--launch is empty"),
    (("pingpong", "--launch", "mpiexec", "--mpicc", ""), "--mpicc is empty"),
    (("pingpong", "--launch", "mpiexec", "--rate", "1gbit"), "--rate and --no-pin are for the lab's nodes"),
    (("pingpong", "--env", "FOO"), "--env FOO: give NAME=VALUE"),
    (("pingpong", "--resume"), "--output names it"),
    (("pingpong", "-o", "/"), "/ is a directory"),
    (("pingpong", "-o", "/proc/none/file"), "/proc/none/file cannot be written"),
    (("pingpong", "--rounds", "0"), "'0' is no number above 0"),
    (("pingpong", "--seconds", "nan"), "'nan' is no time above 0"),
    (("kernels", "--nodes", "0"), "'0' is no number above 0"),
    (("allgather", "--nodes", "4", "--ranks", "2"), "2 ranks cannot be on 4 nodes"),
    (("external", "--suite", "osu", "--dir", ".", "--arguments", "'"), "--arguments ': no closing quotation"),
    (("provider", "--bits", "7"), "AES has no keys of 7 bits"),
    (("provider", "--modes", "cbc", "--sizes", "7"), "cbc cannot be measured with 7 bytes: give multiples of 16"),
    (("provider", "--modes", "gcm", "--sizes", "0"), "gcm cannot be measured with 0 bytes"),
    (("provider", "--rounds", "0"), "'0' is no number above 0"),
    (("provider", "-o", "/"), "/ is a directory"),
    (("all", "--only", "nothing"), "has no nothing"),
    (("all", "-o", "/proc/none"), "the directory /proc/none cannot be made"),
])
def test_bad_input(words, told):
    ran = _bench(*words)
    assert ran.returncode != 0 and told in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
