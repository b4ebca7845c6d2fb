"""petsc4py's own tests, of the sources on PyPI that fit Debian's petsc4py: vectors, matrices, index sets, meshes, solvers from Python."""

from functools import partial
from pathlib import Path

from harness.description import Program, Suite, here, package_version
from harness.sources import installed_version, pypi_source

from suites.mpi4py import unittest_cases

RUNNER = Path(__file__).resolve().parent.parent / "unittest_outcomes.py"
# Of the others, those of matrices take minutes on two cores, and some need what Debian's build lacks or only one rank.
JOBS = {
    "vectors": ("test_vec", "test_is", "test_lgmap", "test_ao", "test_vscat", "test_sf", "test_nsp", "test_sys"),
    "meshes and solvers": ("test_da", "test_ksp", "test_ksp_py", "test_snes", "test_snes_py", "test_ts", "test_ts_py", "test_mat_py"),
}


def programs(mpi, place):
    """The jobs, with the modules that this version has."""
    here("/usr/lib/petsc/lib/python3/dist-packages/petsc4py")
    version = installed_version("python3-petsc4py").split("-")[0]
    tests = pypi_source("petsc4py", version, "test", PETSC_DIR="/usr/lib/petsc")
    found = []
    for job, modules in JOBS.items():
        here_ = [module for module in modules if (tests / f"{module}.py").exists()]
        found.append(Program(name=job, command=["/usr/bin/python3", RUNNER, tests, "outcomes", *here_], timeout=240, cases=partial(unittest_cases, 4, job)))
    return found


SUITE = Suite(
    name="petsc4py",
    origin="PyPI petsc4py (tests), Debian package python3-petsc4py",
    version=package_version("python3-petsc4py"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="each test's outcome on all ranks",
)
