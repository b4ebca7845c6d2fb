"""Marks of tests that run with `make test-all` only: cases of a parametrization."""

import pytest


def slow(*cases):
    """The cases (a tuple has one value per argument), as parameters that `make test` leaves out."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow) for case in cases]
