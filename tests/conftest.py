"""Fixtures for tests that need MPI on several nodes (docs/lab.md).

    def test_something(compile_mpi, run):
        app = compile_mpi(SOURCE, "mpich-5")
        result = run([app, "argument"], nodes=2, ranks=4, mpi="mpich-5", plain=True)
        assert result.returncode == 0, result.stderr

A machine without the privileges or the MPI skips, with the reason; MPISEC_LAB_REQUIRED=1 (CI) makes that a
failure, MPISEC_LAB_TEST_REQUIRED=1 (`make test`) only where an MPI is missing: set-up has installed them all.
"""

import os
import shutil
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from library_faults import fault_of
from nonce_ledger import VARIABLE as NONCE_LEDGER
from nonce_ledger import repeats

from mpisec_lab import build
from mpisec_lab.cluster import Cluster, check_privileges
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import find_mpi


def pytest_configure(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in `make test &`: programs that tests interrupt would inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: minutes; runs with `make test-all` (MPISEC_LAB_TEST_ALL=1) or when -m asks for it")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("MPISEC_LAB_TEST_ALL") == "1" or config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def _missing(reason, *variables):
    for variable in ("MPISEC_LAB_REQUIRED", *variables):
        if os.environ.get(variable) == "1":
            pytest.fail(f"{variable}=1, but {reason}")
    pytest.skip(reason)


def _require(mpi):
    implementation = find_mpi(mpi)
    if not implementation.available():
        _missing(f"{implementation.title} is not here: {implementation.how_to_install()}", "MPISEC_LAB_TEST_REQUIRED")
    return implementation


@pytest.fixture(scope="session")
def lab():
    """Skips the test when this machine does not let us make nodes."""
    try:
        check_privileges()
    except LabError as error:
        _missing(str(error))


@pytest.fixture(scope="session")
def cluster(lab):
    """cluster(nodes=2, **options): a Cluster that the whole test session shares (one job at a time on
    each)."""
    standing = {}

    def get(nodes=2, **options):
        key = (nodes, tuple(sorted(options.items())))
        if key not in standing:
            standing[key] = Cluster(nodes, **options).__enter__()
        return standing[key]

    yield get
    for one in standing.values():
        one.close()


@pytest.fixture(scope="session")
def compile_mpi():
    """compile_mpi(source, mpi, flags=(), name=None, suffix=".c"): see mpisec_lab.build.compile_mpi."""

    def compile_(source, mpi="mpich-5", **options):
        _require(mpi)
        return build.compile_mpi(source, mpi, **options)

    return compile_


@pytest.fixture(scope="session")
def run(cluster):
    """run(app, nodes=2, ranks=2, mpi="mpich-5", plain=False, **options): a Result (stdout, stderr,
    returncode, …).

    app: a path or a list of str. options: env, node_env, node_key, key, mpisec, rate, timeout (seconds,
    60); see Cluster.run. A job that runs out of time is killed and has returncode 124; one that failed without
    MPIsec's doing (a plain job that hung: MPICH's spawn, MPICH 4's end; or library_faults.py) is tried once more. The pipeline threshold is the one that
    the tests' sizes are about, however many ranks share this machine's cores. Debug and sanitizer builds of MPIsec write down
    every nonce: the test fails when two ranks have used the same under one key.
    """

    def run_(app, nodes=2, ranks=2, mpi="mpich-5", **options):
        _require(mpi)
        command = [app] if isinstance(app, str | os.PathLike) else list(app)
        ledgers = tempfile.mkdtemp(prefix="mpisec-nonces-")
        try:
            ours = {"MPISEC_PIPELINE_THRESHOLD": "64K"} | ({} if options.get("plain") else {NONCE_LEDGER: ledgers})
            options["env"] = ours | (options.get("env") or {})
            options = {"timeout": 60, **options}
            result = cluster(nodes).run(command, ranks=ranks, mpi=mpi, **options)
            fault = fault_of(result, mpi)
            if fault:
                warnings.warn(f"run again, for the library's fault: {fault}", stacklevel=2)
            if fault or (result.timed_out and options.get("plain")):
                result = cluster(nodes).run(command, ranks=ranks, mpi=mpi, **options)
            twice = repeats(ledgers)
            assert not twice, twice[:5]
            return result
        finally:
            shutil.rmtree(ledgers)

    return run_


@pytest.fixture(scope="session")
def mpi_python():
    """mpi_python(mpi): path of a Python interpreter with numpy and an mpi4py that uses this MPI."""
    return lambda mpi="mpich-5": str(_require(mpi).python)
