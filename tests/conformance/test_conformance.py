"""The runner of `make conformance`: it tells apart what it is there to tell apart, and a few programs of a real suite."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.description import Case, Program, Suite
from harness.excerpt import excerpt
from harness.jobs import Job
from harness.judge import judge
from harness.page import render
from suites import SUITES

HERE = Path(__file__).parent
WANTED = {"same": "same", "noisy": "same", "different": "differs", "noisy-and-different": "differs", "fails": "failed plain too",
          "fails-sealed": "differs", "hangs": "differs", "stream": "refused", "silent": "nothing sealed"}


def suite(**options):
    return Suite(name="ours", origin="", version=lambda mpi: "", mpis=("mpich-5",), programs=lambda mpi, place: [], compared="", ranks=2, **options)


@pytest.mark.parametrize(("how", "outcome"), WANTED.items())
def test_outcomes_of_programs(compile_mpi, run, tmp_path, how, outcome):
    """Each manner in which a sealed run can differ from a plain one, with a program that does so on purpose."""
    app = compile_mpi(HERE / "programs_that_differ.c")
    judged, messages = Job(run, suite(), Program(name=how, command=[app, how], timeout=3 if how == "hangs" else 5), "mpich-5", tmp_path).outcomes()
    assert judged[how][0] == outcome, judged
    if outcome == "same":
        assert messages > 0


@pytest.mark.parametrize(("program", "outcome"), [("IMB-MPI1 PingPong", "same"), ("IMB-MPI1 Allreduce", "same"), ("IMB-RMA Unidir_put", "same")])
def test_a_sample_of_a_real_suite(mpi_python, run, tmp_path, program, outcome):
    """Intel's benchmarks, which come with the lab's Intel MPI."""
    mpi_python("impi")  # skips where it is missing
    imb = next(suite for suite in SUITES if suite.name == "imb")
    chosen = next(one for one in imb.programs("impi", tmp_path) if one.name == program)
    judged, _ = Job(run, imb, chosen, "impi", tmp_path).outcomes()
    assert judged[program][0] == outcome, judged


def passing(*texts):
    return [Case(True, text, text) for text in texts]


@pytest.mark.parametrize(("plains", "sealed", "tolerance", "outcome"), [
    (["x = 1.0"], "x = 1.0", None, "same"),
    (["x = 1.0"], "x = 1.1", None, "differs"),
    (["x = 1.0"], "x = 1.0000001", 1e-3, "differs"),  # plain always says 1.0
    (["x = 1.0", "x = 1.0000002"], "x = 1.0000001", 1e-3, "same"),
    (["x = 1.0", "x = 1.0000002"], "x = 1.1", 1e-3, "differs"),
    (["x = 1.0", "x = 2.0"], "x = 3.0", None, "same"),  # not compared: plain differs from plain
    (["x = 1.0", "y = 2.0"], "z = 3.0", None, "differs"),
    (["a 1 b 5", "a 2 b 5"], "a 3 b 6", None, "differs"),  # the second number never changes plain
    (["one"], "one\ntwo", None, "differs"),
    (["one\ntwo"], "one", None, "differs"),
])
def test_what_counts_as_a_difference(plains, sealed, tolerance, outcome):
    assert judge("it", passing(*plains), passing(sealed)[0], suite(tolerance=tolerance))[0] == outcome


def test_lines_are_left_out_and_rewritten_as_the_suite_says():
    described = suite(drop=(r"^took",), replace=((r"on node\d", "on a node"),), unordered=True)
    assert judge("it", passing("b on node0\na\ntook 3 s"), passing("a\nb on node1\ntook 4 s")[0], described)[0] == "same"


def test_a_refusal_is_named_and_an_exception_has_its_reason():
    refused = Case(False, "", "MPIsec: MPI_Win_create is refused: keep the call inside a node")
    assert judge("it", passing("x"), refused, suite()) == ("refused", "MPI_Win_create")
    described = suite(exceptions=(("it*", "known to differ"),))
    assert judge("item", passing("x"), Case(False, "", "wrong"), described) == ("excepted", "known to differ")
    assert judge("other", passing("x"), Case(False, "", "wrong"), described)[0] == "differs"
    assert judge("it", passing("x"), None, suite())[0] == "differs"


def test_the_page_names_what_differs():
    entry = {"name": "hpcc", "version": "1.5", "origin": "Debian package hpcc", "mpi": "openmpi-4", "nodes": 2, "ranks": 4, "compared": "the report",
             "started": "2026-11-23 09:00 UTC", "counts": {"same": 2, "differs": 1}, "messages": 12345, "seconds": 61.0, "commit": "abc",
             "cases": {"fft": ["differs", "line 3 is 'a | b'"]}}
    page = render({"command": "make conformance", "conditions": {"machine": "2 cores"}, "missing": {}, "left_out": {"osu": "no registry has it"},
                   "suites": [entry]})
    assert "| hpcc | 1.5 | Debian package hpcc | openmpi-4 | 2 × 4 | 3 | 2 | 0 | 0 | 0 | 0 | 1 | 12,345 | 61 | abc |" in page
    assert "## What differs" in page and "| `fft` | line 3 is 'a ¦ b' |" in page
    assert "- **osu**: no registry has it" in page


@pytest.mark.parametrize(("said", "quoted"), [
    ("wrong sum\x00\x1b[0m\n\nended with status 1", "wrong sum [0m ended with status 1"),
    ("usage: mpiexec -n 3 /home/me/mpisec/build/conformance/mpich_tests-mpich-5/build/pt2pt/large", "usage: mpiexec -n 3 pt2pt/large"),
    ("wrong\n-------------------\nprterun has exited due to process rank 1 with PID 0 on node node0 calling\n\"abort\". This may have caused other "
     "processes in the application to be\nterminated by signals sent by prterun (as reported here).\n-------------------\nended with status 1",
     "wrong ended with status 1"),
    ("wrong\n-------------------\nprterun detected that one or more processes exited with non-zero status,\nthus causing the job to be terminated. The first "
     "process to do so was:\n\n   Process name: [prterun-node0-6993@1,1]\n   Exit code:    1\n-------------------\nended with status 1",
     "wrong ended with status 1"),
    ("[0]PETSC ERROR: bad type\n-------------------\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_SELF\nwith errorcode 62.\n\nNOTE: invoking "
     "MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or may not see output from other processes, depending on\nexactly when Open MPI kills "
     "them.\n-------------------\nended with status 62", "[0]PETSC ERROR: bad type ended with status 62"),
    ("too few processes\ntoo few processes\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n  Proc: [[65049,1],0]\n  Errorcode: 93\n\nNOTE: invoking "
     "MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or may not see output from other processes, depending on\nexactly when Open MPI kills "
     "them.\nended with status 1", "too few processes ended with status 1"),
    ("At least 3 processes required\nAbort(1) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 1) - process 1\nended with status 1",
     "At least 3 processes required ended with status 1"),
])
def test_excerpts_leave_out_what_launchers_say(said, quoted):
    assert excerpt(said) == quoted


def test_excerpts_are_short():
    assert len(excerpt("word " * 1000)) <= 200


def test_the_page_has_no_more_than_excerpts():
    """Neither control characters nor directories of the machine that made it."""
    for file in (HERE / "../../docs/conformance.md", HERE / "../../docs/results/conformance.json"):
        text = file.read_text()
        assert not set(text) & {chr(code) for code in range(32)} - {"\n"}
        assert "/build/conformance/" not in text and "\\u00" not in text


def test_the_version_of_mpich_tests_is_in_its_sources(tmp_path, monkeypatch):
    from suites import mpich_tests

    (tmp_path / "test/mpi").mkdir(parents=True)
    (tmp_path / "test/mpi/version.m4").write_text("m4_define([MPICH_VERSION_m4],[4.0.2])dnl\n")
    monkeypatch.setattr(mpich_tests, "debian_source", lambda *_: tmp_path)
    assert mpich_tests.SUITE.version("mpich-5") == "4.0.2"


@pytest.mark.parametrize(("name", "plain", "sealed"), [
    ("scalapack", "     1     1     1     2     8  1   N      0.02     -1.00         0.0    PASSED", "     1     1     1     2     8  1   N      0.01     -1.00         0.0    PASSED"),
    ("scalapack", "   2   1   1   2   8   N     0.01     -1.00    1.3   0.74   PASSED EVD", "   2   1   1   2   8   N     0.00     -1.00    1.3   0.74   PASSED EVD"),
    ("hpcc", "Scaled residual: 0.027427\nCPU    200   200  80  80   2   2     0.00 PASSED    0.208  0.00", "Scaled residual: 0.0202332"),
])
def test_times_are_left_out(name, plain, sealed):
    described = next(suite for suite in SUITES if suite.name == name)
    assert judge("it", passing(plain), passing(sealed)[0], described)[0] == "same"


def test_verdicts_are_not():
    described = {suite.name: suite for suite in SUITES}
    row = "   2   1   1   2   8   N     0.01     -1.00    1.3   0.74   {} EVD"
    assert judge("it", passing(row.format("PASSED")), passing(row.format("FAILED"))[0], described["scalapack"])[0] == "differs"
    assert judge("it", passing("Scaled residual: 0.3"), passing("Scaled residual: 17.2")[0], described["hpcc"])[0] == "differs"


def test_programs_that_differed_are_run_again():
    from run import merged

    last = {"counts": {"same": 5, "differs": 2, "refused": 1}, "messages": 10, "seconds": 3.0, "commit": "a",
            "cases": {"x": ["differs", "it is 1"], "y": ["differs", "it is 2"], "z": ["refused", "MPI_File_open"]}}
    entry = {"counts": {"same": 1, "differs": 1}, "messages": 5, "seconds": 1.0, "commit": "b", "cases": {"y": ["differs", "it is 3"]}}
    new = merged(last, ["x", "y"], entry)
    assert new["counts"] == {"same": 6, "differs": 1, "refused": 1} and new["commit"] == "a, b" and new["messages"] == 15
    assert new["cases"] == {"y": ["differs", "it is 3"], "z": ["refused", "MPI_File_open"]}


def test_the_page_is_that_of_the_results():
    """And each suite has a row, or is named with the reason why not."""
    results = json.loads((HERE / "../../docs/results/conformance.json").read_text())
    assert render(results) == (HERE / "../../docs/conformance.md").read_text(), "`make conformance` writes it anew"
    rows = {f"{entry['name']}, {entry['mpi']}" for entry in results["suites"]}
    assert sorted([*rows, *results["missing"]]) == sorted(f"{suite.name}, {mpi}" for suite in SUITES for mpi in suite.mpis)


def test_what_could_not_be_run_stays_named():
    """A run of other suites does not drop it; results do."""
    from run import all_missing

    before = {"petsc4py, openmpi-4": "no such package", "a suite of old, impi": "it was"}
    rows = {("hpcc", "openmpi-4"): {}}
    assert all_missing(before, {"imb, impi": "no wheel"}, rows) == {"petsc4py, openmpi-4": "no such package", "imb, impi": "no wheel"}
    assert all_missing(before, {"hpcc, openmpi-4": "no such package"}, rows | {("petsc4py", "openmpi-4"): {}}) == {}
