"""MPICH's own tests (mpich_tests.py) of one-sided communication, files and partitioned messages."""

from functools import partial

from harness.description import Suite

from suites.mpich_tests import RANKS, programs, version_of

DIRECTORIES = ("rma", "io", "part", "threads/rma")

SUITE = Suite(
    name="mpich_windows",
    origin="Debian source mpich",
    version=version_of,
    mpis=("mpich-5",),
    programs=partial(programs, directories=DIRECTORIES),
    compared="exit status and standard output (“No Errors”, or the errors found)",
    unordered=True,
    ranks=RANKS,
)
