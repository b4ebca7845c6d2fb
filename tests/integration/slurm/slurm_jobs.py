"""What the tests of jobs under Slurm share. Imported by name: other tests import tests/conftest.py as `conftest`."""

import time

PMI = {"mpich-5": "pmi2", "mpich-4": "pmi2", "openmpi-5": "pmix", "openmpi-4": "pmix"}


def script(path, *lines):
    """A batch script."""
    path.write_text("\n".join(["#!/bin/bash", *map(str, lines)]) + "\n")
    return path


def wait_for(condition, seconds=60):
    """Until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.2)
