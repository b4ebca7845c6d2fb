"""M5, a procedure at a time: while a rank waits in a call for another rank of its node, its large message to another node goes on
(blocking_calls.c; what keeps it moving is said of each procedure in docs/procedures.md)."""

import re
import subprocess

import pytest
from mpi_programs import HERE, YIELD, build
from slow import slow

CASES = re.findall(r'^    (?:TOGETHER\(|\{")(\w+(?:\.\w+)?)', (HERE / "blocking_calls.c").read_text(), re.MULTILINE)
LIMIT = 40  # seconds for a case that takes less than one, on a machine that does much else
FIRST_LIMIT = 15  # as long as it will get another try, in a job of its own
# Plain Open MPI does not come back from these either, or not always.
PLAIN_HANGS = {("openmpi-5", "Parrived"), ("openmpi-5", "Wait.partitioned")}
# Open MPI's one-sided calls on shared memory look at that memory alone, so plain programs that poll with them hang; with MPIsec
# they move messages like any other call; so does making a communicator from a group, which it does through its runtime.
ONLY_SEALED = {("openmpi-5", name) for name in (
    "Win_test", "Win_flush", "Win_flush_local", "Win_flush_all", "Win_flush_local_all", "Win_unlock", "Win_unlock_all",
    "Comm_create_from_group")}


def run_cases(run, app, cases, **where):
    """{case: "ok", or what happened}. A case that hangs or fails ends the job; the rest gets another one, and so does that case, unless
    it was the first of its job: plain Open MPI may hang in a file that is not the first that a job opens."""
    options = where.pop("options", [])
    verdicts, left, limit = {}, list(cases), FIRST_LIMIT
    while left:
        result = run([app, "/dev/shm", str(limit), *options, *left], nodes=2, ranks=4, timeout=2 * LIMIT + 5 * len(left), **where)
        held = re.findall(r"^ok (\S+)", result.stdout, re.MULTILINE)
        verdicts |= dict.fromkeys(held, "ok")
        left = [case for case in left if case not in held]
        if not left:
            break
        hung = re.search(r"^hung (\S+) on rank \d+", result.stdout, re.MULTILINE)
        failed = re.search(r"^FAILED.*$", result.stderr, re.MULTILINE)
        at = hung[1] if hung and hung[1] in left else left[0]
        if held or limit < LIMIT:
            left.remove(at)
            left.insert(0, at)
            limit = LIMIT
            continue
        said = hung or failed
        verdicts[at] = said[0] if said else f"returncode {result.returncode}: {(result.stdout + result.stderr)[-500:]}"
        left.remove(at)
    return verdicts


@pytest.fixture(scope="module")
def verdicts(run, compile_mpi):
    """verdicts(mpi, …): what became of each case that this MPI has and can do; once per MPI and options."""
    known = {}

    def get(mpi, plain=False, options=(), env=None):
        key = (mpi, plain, tuple(options), str(env))
        if key not in known:
            app = build(compile_mpi, mpi, "blocking_calls.c", ["harness.c"])
            cases = subprocess.run([app, "--list"], capture_output=True, text=True, check=True).stdout.split()
            left_out = PLAIN_HANGS | (ONLY_SEALED if plain else set())
            cases = [case for case in cases if (mpi, case) not in left_out]
            known[key] = run_cases(run, app, cases, mpi=mpi, plain=plain, options=list(options), env=YIELD | (env or {}))
        return known[key]

    return get


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", *slow("mpich-4", "openmpi-4")])
def test_call_keeps_large_messages_moving(verdicts, mpi, case):
    """M5: the case of this procedure comes to its end."""
    found = verdicts(mpi)
    if case not in found:
        pytest.skip(f"{mpi} does not have it, or hangs without MPIsec too")
    assert found[case] == "ok", found[case]


@pytest.mark.parametrize("mpi", ["mpich-5", *slow("openmpi-5")])
def test_without_threads(verdicts, mpi):
    """M5 M10: programs that initialize with MPI_Init, where MPIsec may let the library wait when nothing is under way."""
    bad = {case: found for case, found in verdicts(mpi, options=["--single"]).items() if found != "ok"}
    assert not bad, bad


@pytest.mark.slow
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_plain_mpi_gives_the_same(verdicts, mpi):
    """The same without MPIsec: what is asked of MPIsec is what the MPI gives."""
    bad = {case: found for case, found in verdicts(mpi, plain=True).items() if found != "ok"}
    assert not bad, bad
