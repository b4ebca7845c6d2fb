"""Datatypes at their limits: one element of more than 2 GiB; padding."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_an_element_of_more_than_2_gib(run, compile_mpi, mpi):
    """M8: it is sent and received, and nothing between its blocks is written. Takes 7 GB of memory."""
    result = run([compile_mpi(HERE / "large_element.c", mpi)], mpi=mpi, timeout=240)
    assert result.returncode == 0 and "wrong: 0" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_padding_has_nothing_of_another_message(run, compile_mpi, mpi):
    """M8: what a long double's padding receives is what it was before, what was sent, or zero."""
    result = run([compile_mpi(HERE / "padding.c", mpi)], mpi=mpi)
    assert result.returncode == 0, result.stderr
    assert re.search(r"wrong 0 padding kept \d+ sent \d+ zero \d+ stale 0$", result.stdout, re.MULTILINE), result.stdout
