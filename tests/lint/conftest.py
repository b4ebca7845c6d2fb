"""Fixtures for the tests of what `make lint` runs."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def judged(request):
    """judged(*arguments): (exit status, lines of output) of the tool that the test's module names in TOOL."""

    def run(*arguments):
        ran = subprocess.run([sys.executable, TOOLS / request.module.TOOL, *arguments], capture_output=True, text=True)
        assert not ran.stderr, ran.stderr
        return ran.returncode, ran.stdout.splitlines()

    return run
