"""mpi4py-fft's own tests, of the oldest sources on PyPI that can be fetched, with Debian's mpi4py-fft."""

from functools import partial
from pathlib import Path

from harness.description import Program, Suite, here, package_version
from harness.sources import pypi_source

from suites.mpi4py import unittest_cases

RUNNER = Path(__file__).resolve().parent.parent / "unittest_outcomes.py"


def programs(mpi, place):
    """Distributed arrays, with their redistributions and transforms. test_pencil and test_mpifft take minutes each."""
    here("/usr/lib/python3/dist-packages/mpi4py_fft")
    tests = pypi_source("mpi4py-fft", "2.0.6", "tests")
    return [Program(name=module, command=["/usr/bin/python3", "-W", "ignore", RUNNER, tests, "outcomes", module], timeout=200,
                    cases=partial(unittest_cases, 4, module))
            for module in ("test_darray",)]


SUITE = Suite(
    name="mpi4py_fft",
    origin="PyPI mpi4py-fft (tests), Debian package python3-mpi4py-fft",
    version=package_version("python3-mpi4py-fft"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="each test's outcome on all ranks",
)
