"""Commands in an environment without traces of this tree, another MPI or Python."""

import os
import subprocess

import pytest


def ask(command, **options):
    """Runs it and returns what it printed; what it said, where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def fetch(command, **options):
    """The same for what needs PyPI: skips the test where that fails; with MPISEC_LAB_REQUIRED=1 (CI) it is a failure."""
    try:
        ask(command, env=bare(), **options)
    except AssertionError as error:
        (pytest.fail if os.environ.get("MPISEC_LAB_REQUIRED") == "1" else pytest.skip)(str(error))


def bare():
    """This environment without what leads to another MPIsec, MPI or Python."""
    foreign = ("MPISEC_", "PYTHON", "VIRTUAL_ENV", "LD_", "OMPI_", "PMI", "MPI")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
