"""tests/conftest.py: what makes a test that cannot run a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
NEEDS_AN_MPI = """
def test_it(compile_mpi):
    compile_mpi("int main(void) { return 0; }\\n", "mpich-5")
"""
NEEDS_PRIVILEGES = """
import sys
from mpisec_lab.errors import LabError

def refuse():
    raise LabError("no namespaces here")

sys.modules["conftest"].check_privileges = refuse

def test_it(lab):
    pass
"""


@pytest.mark.parametrize(("needs", "variable", "outcome"), [
    (NEEDS_AN_MPI, None, "1 skipped"),
    (NEEDS_AN_MPI, "MPISEC_LAB_REQUIRED", "1 failed"),
    (NEEDS_AN_MPI, "MPISEC_LAB_TEST_REQUIRED", "1 failed"),
    (NEEDS_PRIVILEGES, None, "1 skipped"),
    (NEEDS_PRIVILEGES, "MPISEC_LAB_REQUIRED", "1 error"),
    (NEEDS_PRIVILEGES, "MPISEC_LAB_TEST_REQUIRED", "1 skipped"),
], ids=lambda value: {NEEDS_AN_MPI: "mpi", NEEDS_PRIVILEGES: "privileges"}.get(value))
def test_what_is_missing_fails_where_it_is_required(tmp_path, needs, variable, outcome):
    """`make test` has installed the MPIs, but gives nobody privileges."""
    (tmp_path / "test_it.py").write_text(needs)
    env = {name: value for name, value in os.environ.items() if not name.endswith("REQUIRED")}
    env |= {"PYTHONPATH": str(TESTS), "MPISEC_LAB_MPIS": str(tmp_path / "none"), **({variable: "1"} if variable else {})}
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path], env=env,
                         capture_output=True, text=True, check=False)
    assert outcome in ran.stdout.splitlines()[-1], ran.stdout + ran.stderr
