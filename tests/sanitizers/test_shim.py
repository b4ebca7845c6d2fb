"""MPIsec as a sanitizer sees it, in real MPI jobs on two nodes: ASan + UBSan over all rules, TSan over those with threads.

The programs are compiled with the same compiler and sanitizer, whose run-time library is then in the process first. The MPI library is not
instrumented: what it does by itself is left out by asan.supp (leaks) and tsan.supp. Needs build/asan and build/tsan:
`tools/build.sh asan`, `tools/build.sh tsan`; tools/test.sh builds both.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "integration" / "mpi"))

from mpi_programs import RULE_SOURCES, RULES, build  # noqa: E402
from nonce_ledger import VARIABLE as NONCE_LEDGER  # noqa: E402
from nonce_ledger import repeats  # noqa: E402

MPI = "mpich-5"
CLANG = "-cc=" + ("clang-14" if shutil.which("clang-14") else "clang")  # for MPICH's mpicc
TRAFFIC_SOURCES = ["schedule.c", "layout.c", "harness.c"]

# On with everything that has threads or state of its own: a node of the lab has one core, so workers must be asked for; keys
# are renewed often; the watchdog looks around every few seconds. UCX, which MPICH carries, replaces libc's madvise and so enters
# ThreadSanitizer from a thread that has already ended there: a crash, so no hooks.
SETTINGS = {
    "MPISEC_WORKERS": "2", "MPISEC_REKEY_MESSAGES": "50", "MPISEC_STATS": "1", "MPISEC_STALL_TIME": "5",
    "UCX_MEM_MMAP_HOOK_MODE": "none", "MPISEC_CONNECTIONS": "authenticate",
}


@dataclass(frozen=True)
class Sanitizer:
    """One build under build/`preset`, and how programs of the lab run with it."""

    preset: str
    flags: tuple  # of the compiler, for the MPI programs
    options: dict  # variables for the sanitizer's run-time libraries; {logs} and {here} are filled in

    def program(self):
        """The mpisec of this build, or a loud skip."""
        path = Path(os.environ.get(f"MPISEC_LAB_{self.preset.upper()}_MPISEC", ROOT / f"build/{self.preset}/bin/mpisec"))
        if not os.access(path, os.X_OK):
            pytest.skip(f"NOT SANITIZED: there is no {path}; `tools/build.sh {self.preset}` makes it")
        return path

    def environment(self, logs, symbolizer):
        """Variables for the ranks; reports go to files in the directory `logs`."""
        options = {name: f"external_symbolizer_path={symbolizer}:" + value.format(logs=logs, here=HERE)
                   for name, value in self.options.items()}
        return SETTINGS | options | {"MPISEC_CACHE_DIR": str(logs.parent / "cache")}


ASAN = Sanitizer(
    "asan", (CLANG, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
    {
        # mpisec exec preloads the shim in front of the run-time library, which is otherwise first.
        # Aborts, because Hydra lets other ranks wait for one that only exits.
        "ASAN_OPTIONS": "log_path={logs}/asan:abort_on_error=1:exitcode=99:verify_asan_link_order=0:fast_unwind_on_malloc=0:malloc_context_size=16",
        "UBSAN_OPTIONS": "log_path={logs}/ubsan:abort_on_error=1:print_stacktrace=1",
        "LSAN_OPTIONS": "suppressions={here}/asan.supp:print_suppressions=0",
    },
)
TSAN = Sanitizer(
    "tsan", (CLANG, "-fsanitize=thread", "-fno-omit-frame-pointer"),
    {"TSAN_OPTIONS": "log_path={logs}/tsan:exitcode=66:second_deadlock_stack=1:history_size=5:suppressions={here}/tsan.supp"},
)


@pytest.fixture(scope="session")
def symbolizer(tmp_path_factory):
    """The program with which reports get their names; a sanitizer knows the protocol by the program's name."""
    path = tmp_path_factory.mktemp("symbolizer") / "llvm-symbolizer"
    subprocess.run(["cc", "-static", "-o", path, HERE / "symbolizer.c"], check=True)
    return path


@pytest.fixture
def job(run, tmp_path, symbolizer):
    """job(sanitizer, command, ranks): (Result, reports), where reports is all that the sanitizer wrote on any rank."""

    def start(sanitizer, command, ranks=4, timeout=600):
        logs, ledgers = tmp_path / "logs", tmp_path / "nonces"
        logs.mkdir()
        ledgers.mkdir()
        env = sanitizer.environment(logs, symbolizer) | {NONCE_LEDGER: str(ledgers)}
        result = run(command, nodes=2, ranks=ranks, mpi=MPI, mpisec=sanitizer.program(), env=env, timeout=timeout)
        assert not repeats(ledgers)
        if result.returncode == 0:  # these builds keep the ledger: S4 over everything that the job sealed
            assert len(list(ledgers.iterdir())) == ranks
        return result, "\n".join(path.read_text(errors="replace") for path in sorted(logs.iterdir()))

    start.ledgers = tmp_path / "nonces"
    return start


@pytest.fixture
def clean(job):
    """clean(sanitizer, command): the job's standard output, after a run without a report."""

    def start(*arguments, **options):
        result, reports = job(*arguments, **options)
        assert not reports, reports[:20000]
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-6000:]
        return result.stdout

    return start


def test_rules_under_asan(clean, compile_mpi):
    """S2 M1 to M12: no access outside of memory, no undefined behaviour, nothing leaked, in any rule."""
    ASAN.program()
    app = build(compile_mpi, MPI, "rules/rules.c", RULE_SOURCES, ASAN.flags)
    output = clean(ASAN, [app])
    for rule in RULES:
        assert f"ok {rule} " in output
    assert "rules: done" in output


def test_random_traffic_under_asan(clean, compile_mpi):
    """The same for random traffic in two threads."""
    ASAN.program()
    app = build(compile_mpi, MPI, "traffic.c", TRAFFIC_SOURCES, ASAN.flags)
    assert "operations done" in clean(ASAN, [app, "--operations", 400, "--threads", 2])


@pytest.mark.parametrize("rule", ["partitioned", "progress", "threads"])
def test_rules_under_tsan(clean, compile_mpi, rule):
    """M5 M10: no data race and no lock order that could deadlock."""
    TSAN.program()
    app = build(compile_mpi, MPI, "rules/rules.c", RULE_SOURCES, TSAN.flags)
    assert f"ok {rule} " in clean(TSAN, [app, rule])


def test_random_traffic_under_tsan(clean, compile_mpi):
    """M10: the same for random traffic in three threads."""
    TSAN.program()
    app = build(compile_mpi, MPI, "traffic.c", TRAFFIC_SOURCES, TSAN.flags)
    assert "operations done" in clean(TSAN, [app, "--operations", 400, "--threads", 3])


@pytest.mark.parametrize("sanitizer,misuse,report,where", [
    (ASAN, "statuses", "AddressSanitizer: heap-buffer-overflow", "mpisec::shim::"),
    (ASAN, "leak", "LeakSanitizer: detected memory leaks", "lose_memory"),
    (TSAN, "status", "ThreadSanitizer: data race", "mpisec::shim::"),
], ids=["asan", "leak", "tsan"])
def test_a_report_is_seen(job, compile_mpi, sanitizer, misuse, report, where):
    """A wrong program, whose fault happens in MPIsec's code (a leak: its own): reported from there, and the job fails."""
    sanitizer.program()
    app = compile_mpi(HERE / "misuse.c", MPI, flags=[*sanitizer.flags, "-pthread"])
    result, reports = job(sanitizer, [app, misuse], ranks=2)
    assert report in reports, result.stdout + result.stderr
    assert where in reports, reports
    assert result.returncode != 0


def test_two_ranks_that_believe_they_are_the_root(job, compile_mpi):
    """S4: no nonce twice under the key of an inter-communicator, whose rooted collectives name the sealer by the program's arguments: the
    ledgers of the two ranks, which `job` compares."""
    ASAN.program()
    app = compile_mpi(HERE / "two_roots.c", MPI, flags=["-std=gnu11", *ASAN.flags])
    job(ASAN, [app], ranks=2)
    assert len(list(job.ledgers.iterdir())) == 2
