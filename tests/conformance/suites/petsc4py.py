"""petsc4py's own tests, of the sources on PyPI that fit Debian's petsc4py: vectors, matrices, index sets, meshes, solvers from Python."""

from functools import partial
from pathlib import Path

from harness.description import Program, Suite, here, package_version
from harness.sources import installed_version, pypi_source
from suites.mpi4py import unittest_cases

RUNNER = Path(__file__).resolve().parent.parent / "unittest_outcomes.py"
# test_comm counts references of communicators, the others need what Debian's build lacks or one rank.
MODULES = ("test_vec", "test_mat_aij", "test_mat_dense", "test_mat_py", "test_is", "test_lgmap", "test_ao", "test_da", "test_da_view", "test_sf", "test_ksp",
           "test_ksp_py", "test_snes", "test_snes_py", "test_ts", "test_ts_py", "test_vscat", "test_nsp", "test_sys")


def programs(mpi, place):
    """One job of all modules."""
    here("/usr/lib/petsc/lib/python3/dist-packages/petsc4py")
    version = installed_version("python3-petsc4py").split("-")[0]
    tests = pypi_source("petsc4py", version, "test", PETSC_DIR="/usr/lib/petsc")
    modules = [module for module in MODULES if (tests / f"{module}.py").exists()]
    return [Program(name="petsc4py", command=["/usr/bin/python3", RUNNER, tests, "outcomes", *modules], timeout=200, cases=partial(unittest_cases, 4, "all"))]


SUITE = Suite(
    name="petsc4py",
    origin="PyPI petsc4py (tests), Debian package python3-petsc4py",
    version=package_version("python3-petsc4py"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="each test's outcome on all ranks",
)
