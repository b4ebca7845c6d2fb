"""mpisec sim compare-paper and --plot, mpisec tune, and what doctor says of tables."""

import json
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))

from mpisec_bench import paper, predict  # noqa: E402

BUILT_IN = ROOT / "src/coll/selection/default_selection.toml"
SHARED_CPUS = ROOT / "src/coll/selection/shared_cpus_selection.toml"


def test_the_papers_numbers_are_read_as_it_explains_them():
    table = paper.tables()["III"]
    row = next(row for row in table.rows if row.size == "4KB")
    assert (row.plain, round(row.best, 2), row.scheme) == (227.00, 190.63, "c-rd")
    assert [len(table.rows) for table in paper.tables().values()] == [15, 10, 11, 10]


def test_too_little_memory_is_said(program):
    """One sentence, where the administrator limits the address space, and no core dump."""
    few = 300 << 20
    words = [program, "sim", "allreduce", "--ranks", "65536", "--nodes", "1024", "--size", "1K", "--algorithm", "multi-leader"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (few, few)))
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "mpisec: There is not enough memory for this.\n")


def test_the_documentation_shows_what_is_printed(mpisec):
    """docs/collectives.md: the first command of its section, and the table that it prints."""
    text = (ROOT / "docs/collectives.md").read_text()
    command = re.search(r"^    (mpisec sim allgather .*)$", text, re.MULTILINE).group(1)
    printed = text.partition("The first of the commands above prints:\n\n")[2].partition("\n\nA message of n bytes")[0]
    ran = mpisec(*command.partition("#")[0].split()[1:])
    assert ran.returncode == 0, ran.stderr
    assert [line.rstrip() for line in ran.stdout.strip().splitlines()] == [line.removeprefix("    ") for line in printed.splitlines()]


@pytest.fixture(scope="module")
def compared(program):
    """The comparison of the tables that the models were fitted to."""
    return predict.compare(program)


@pytest.mark.slow
def test_the_simulation_names_the_papers_best_scheme_in_four_of_five_rows(compared):
    right, rows = predict.count(compared)
    assert rows == 25
    assert right >= 0.8 * rows, predict.report(compared)


@pytest.mark.slow
def test_the_simulation_is_near_the_large_messages_of_both_clusters(compared):
    for pairs in compared.values():
        for row, predicted in pairs[-3:]:
            assert predicted.plain == pytest.approx(row.plain, rel=0.25), row
            assert predicted.naive == pytest.approx(row.naive, rel=0.25), row
            assert predicted.times[row.scheme] == pytest.approx(row.best, rel=0.25), row


def test_compare_paper_prints_its_table(mpisec):
    ran = mpisec("sim", "compare-paper", "--tables", "III")
    assert ran.returncode == 0, ran.stderr
    assert "Table III: noleland, 128 ranks on 8 nodes" in ran.stdout and " of 15 rows" in ran.stdout
    assert mpisec("sim", "compare-paper", "--tables", "VII").returncode == 2


@pytest.mark.parametrize(("name", "start"), [("figure.svg", b"<?xml"), ("figure.png", b"\x89PNG")])
def test_plot(mpisec, tmp_path, name, start):
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    ran = mpisec("sim", "allgather", "--ranks", 8, "--nodes", 2, "--size", "0,64,4K", "--plot", path, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert path.read_bytes().startswith(start)
    ran = mpisec("sim", "bcast", "--ranks", 8, "--nodes", 2, "--plot", tmp_path / "figure.pdf", env=environment)
    assert ran.returncode == 1 and "neither an .svg nor a .png" in ran.stderr


def test_tune_makes_a_table_that_jobs_can_use(mpisec, tmp_path):
    table = tmp_path / "selection.toml"
    made = mpisec(
        "tune", "--simulate", "--model", "noleland", "--nodes", "2", "--ranks-per-node", "1,16", "--size", "64,64K",
        "--collective", "allgather,alltoall", "-o", table,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    rules = tomllib.loads(table.read_text())["rule"]
    assert {rule["collective"] for rule in rules} == {"allgather", "alltoall"}
    assert "mpisec tune --simulate --model noleland --nodes 2 " in table.read_text()

    found = mpisec("doctor", env={"MPISEC_TUNING": str(table), "MPISEC_BCAST": "naive"}).stdout
    assert f"as {table} says, and the built-in table for calls that it has no rule for" in found
    assert "bcast: binomial, by MPISEC_BCAST" in found
    assert f"alltoall: {', '.join(dict.fromkeys(rule['algorithm'] for rule in rules if rule['collective'] == 'alltoall'))}" in found
    assert "scan: recursive-doubling, multi-leader, smp" in found

    table.write_text("threshold = 65536\n[[message]]\nbytes = [0, inf]\nsegment = inf\n")
    found = mpisec("doctor", env={"MPISEC_TUNING": str(table)}).stdout
    assert "messages between two ranks: in segments beyond 65536 bytes, cut by 1 rule of that table" in found

    table.write_text('[[rule]]\ncollective = "bcast"\n')
    found = mpisec("doctor", env={"MPISEC_TUNING": str(table)}).stdout
    assert f"PROBLEM: MPISEC_TUNING={table}, line 1: a rule needs collective and algorithm" in found


def test_tune_makes_rules_for_messages_of_measured_ratios(mpisec, tmp_path):
    """Both patterns count; -1 is the whole rest."""
    times, table = tmp_path / "times.json", tmp_path / "selection.toml"
    rows = [{"threshold": 0, "segment": segment, "bytes": size, "ratio": ratio}
            for segment, size, both in ((-1, 1 << 19, (0.8, 0.9)), (-1, 1 << 21, (0.5, 2.1)), (1 << 18, 1 << 21, (0.9, 0.9)))
            for ratio in both]
    times.write_text(json.dumps({"times": [], "messages": rows}))
    made = mpisec("tune", "--times", times, "-o", table)
    assert made.returncode == 0, made.stderr
    assert tomllib.loads(table.read_text())["message"] == [
        {"bytes": [0, 1 << 20], "segment": float("inf")}, {"bytes": [(1 << 20) + 1, float("inf")], "segment": 1 << 18}]
    assert "2 rules of that table" in mpisec("doctor", env={"MPISEC_TUNING": str(table)}).stdout
    refused = mpisec("tune", "--simulate", "--collective", "messages")
    assert refused.returncode == 1 and "messages between two ranks are measured, not simulated" in refused.stderr


def test_the_built_in_table_says_how_it_was_made(mpisec, tmp_path):
    """The same command gives the same rules; of two collectives that are soon simulated."""
    comment = next(line for line in BUILT_IN.read_text().splitlines() if "mpisec tune" in line)
    again = mpisec(*comment.split()[2:], "--collective", "barrier,scan")
    assert again.returncode == 0, again.stderr
    lines = [line for line in BUILT_IN.read_text().splitlines() if '"barrier"' in line or '"scan"' in line]
    assert [line for line in again.stdout.splitlines() if line.startswith("    {")] == lines, (
        "the algorithms or the model changed: make src/coll/selection/default_selection.toml again, its head says how"
    )


def test_the_table_for_shared_cpus_is_made_of_the_times_beside_it(mpisec, tmp_path):
    """What was measured is in docs/results, and the command in the table's head makes the table of it."""
    comment = next(line for line in SHARED_CPUS.read_text().splitlines() if "mpisec tune" in line)
    words = [str(ROOT / word) if word.startswith("docs/") else word for word in comment.split()[2:]]
    again = mpisec(*words)
    assert again.returncode == 0, again.stderr
    rules = [line for line in SHARED_CPUS.read_text().splitlines() if line.startswith("    {")]
    assert rules and [line for line in again.stdout.splitlines() if line.startswith("    {")] == rules


@pytest.mark.parametrize(("options", "said"), [
    (("--times", "FILE", "--launch", "mpiexec", "--keep-times", "x"), "--times measures nothing: it makes the table of the times in its file; leave out "
                                                                     "what has no effect then: --launch, --keep-times"),
    (("--times", "FILE", "--nodes", "4"), "leave out what has no effect then: --nodes"),
    (("--times", "FILE", "--mpi", "openmpi-5", "--size", "64"), "leave out what has no effect then: --mpi, --size"),
    (("--launch", "mpiexec", "--mpi", "mpich-5"), "leave out what has no effect then: --mpi"),
    (("--mpicc", "mpicc"), "leave out what has no effect then: --mpicc"),
    (("--launch", ""), "--launch is empty"),
    (("--times", ""), "--times is empty"),
    (("--size", "12"), "give multiples of 8"),
])
def test_tune_refuses_options_that_have_no_effect(mpisec, tmp_path, options, said):
    times = tmp_path / "times.json"
    times.write_text(json.dumps({"times": [{"collective": "barrier", "algorithm": "linear", "nodes": 2, "ranks_per_node": 1, "seconds": 1e-6}]}))
    ran = mpisec("tune", *(times if word == "FILE" else word for word in options))
    assert ran.returncode == 2 and said in ran.stderr and not ran.stdout, ran


def test_doctor_names_the_algorithms(mpisec):
    found = mpisec("doctor").stdout
    assert "rules of the built-in table say" in found and "allgather: naive, pipeline" in found
    assert "allreduce, where the ranks of a node share one CPU: first smp" in found
    assert "bcast, where" not in found
    found = mpisec("doctor", env={"MPISEC_ALLGATHER": "o-wing"}).stdout
    assert 'PROBLEM: MPISEC_ALLGATHER cannot be "o-wing": "auto" or one of naive, o-ring' in found


def test_tune_from_measured_times(mpisec, tmp_path):
    """The faster algorithm of each size gets a rule; an algorithm of another version is named. Earlier names of algorithms serve."""
    def row(algorithm, size, seconds):
        return {"collective": "bcast", "algorithm": algorithm, "nodes": 2, "ranks_per_node": 2, "bytes": size, "seconds": seconds}

    times = tmp_path / "times.json"
    times.write_text(json.dumps({"times": [row("naive", 64, 1e-6), row("node", 64, 2e-6), row("naive", 65536, 9e-5), row("node", 65536, 5e-5)]}))
    made = mpisec("tune", "--times", times)
    assert made.returncode == 0, made.stderr
    rules = tomllib.loads(made.stdout)["rule"]
    assert [(rule["algorithm"], rule["bytes"]) for rule in rules] == [("binomial", [0, 2048]), ("smp", [2049, float("inf")])]

    assert f"#   mpisec tune --times {times}\n" in made.stdout
    kept = json.loads(times.read_text()) | {"command": "mpisec tune --nodes 2\nrule = 1"}
    times.write_text(json.dumps(kept))
    assert "#   mpisec tune --nodes 2 rule = 1\n" in mpisec("tune", "--times", times).stdout, "one line of comment"

    for wrong in (row("naive", -64, 1e-6), row("naive", 64, 1e-6) | {"nodes": 5000}, row("naive", 64, 0)):
        times.write_text(json.dumps({"times": [wrong]}))
        assert "there are 1 to 4096 nodes and ranks, and the rest is greater than 0" in mpisec("tune", "--times", times).stderr

    times.write_text(json.dumps({"times": [row("no-such", 64, 1e-6)]}))
    made = mpisec("tune", "--times", times)
    assert made.returncode == 1 and "there is no algorithm no-such of bcast" in made.stderr
    times.write_text("{}")
    assert "holds no times of mpisec tune" in mpisec("tune", "--times", times).stderr
