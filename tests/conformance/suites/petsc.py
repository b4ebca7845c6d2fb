"""PETSc's tutorials (vectors, linear and nonlinear solvers, time steppers, meshes), with the arguments of the tests that their sources
name for several ranks. They are compiled against Debian's PETSc."""

import re
import shlex
import subprocess

from harness.description import Missing, Program, Suite, package_version
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

PARTS = ("vec/vec", "ksp/ksp", "ksp/pc", "snes", "ts", "dm", "mat")
EACH = 6  # programs of a part
# What Debian's real, double-precision PETSc has; tests that require anything else are left out.
HAS = {"!complex", "double", "!single", "c", "!__float128", "defined(PETSC_USE_LOG)", "!defined(PETSC_USE_64BIT_INDICES)", "long_runtime_not"}


def _tests(text):
    """{key: value} of each test in a source's TEST block that stands by itself (not in a testset)."""
    block = re.search(r"/\*TEST(.*?)TEST\*/", text, re.DOTALL)
    if not block or "build:" in block.group(1):
        return
    for part in re.split(r"^ {2,4}test:\s*$", block.group(1), flags=re.MULTILINE)[1:]:
        part = part.split("testset:")[0]
        yield dict(re.findall(r"^\s+(\w+):\s*(.*?)\s*$", part, re.MULTILINE))


def _usable(test):
    requires = set(test.get("requires", "").split())
    simple = not set("${}|<>;") & set(test.get("args", "")) and "file" not in test.get("args", "") and not test.get("args", "").endswith("\\")
    return 2 <= int(test.get("nsize", "1") if test.get("nsize", "1").isdigit() else 1) <= 4 and requires <= HAS and simple


def _compiled(source, mpi, place):
    """The program of a source, or None when it does not compile here."""
    program = place / "programs" / "-".join(source.parts[-5:])[:-2]
    program.parent.mkdir(exist_ok=True)
    if not program.exists():
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "PETSc"], capture_output=True, text=True, check=False).stdout.split()
        if not flags:
            raise Missing("pkg-config knows no PETSc: `make conformance` installs petsc-dev")
        try:
            called([*find_mpi(mpi).compiler, "-O1", "-w", "-o", program, source, *flags, "-lm"], place)
        except Missing:
            return None
    return program


# Star forests by one-sided communication: vectors' scatters, matrices' products and meshes stand on them.
# Debian's build has them on windows of MPI_Win_create only.
SYNCHRONIZATIONS = ("fence", "active", "lock")
FOREST = ("-test_bcast", "-test_reduce", "-test_degree", "-test_gather", "-test_scatter", "-test_embed", "-test_invert")
SOLVER = ("-m", "20", "-n", "20", "-ksp_monitor_short")
# Plain Open MPI 4.1 allocates no window over TCP by its own choice of component.
OSC = {"OMPI_MCA_osc": "pt2pt"}


def _windows(mpi, place, sources):
    """PETSc's test of star forests on windows, and solvers whose vectors' scatters use them."""
    forest = _compiled(sources / "vec/is/sf/tutorials/ex1.c", mpi, place)
    solver = _compiled(sources / "ksp/ksp/tutorials/ex2.c", mpi, place)
    for sync in SYNCHRONIZATIONS:
        options = ["-sf_type", "window", "-sf_window_sync", sync, "-sf_window_flavor", "create", "-malloc_debug", "0"]
        for name, program, arguments in (("vec/is/sf/ex1", forest, FOREST), ("ksp/ksp/ex2", solver, SOLVER)):
            yield Program(name=f"{name} window {sync}", command=[program, *arguments, *options], env=OSC)


def programs(mpi, place):
    """One program for each of the first tutorials of a part that have a test for several ranks."""
    sources, found = debian_source("petsc", "src/*/tutorials/*") / "src", []
    for part in PARTS:
        taken = 0
        for source in sorted((sources / part / "tutorials").glob("ex*.c")):
            test = next((test for test in _tests(source.read_text(errors="replace")) if _usable(test)), None)
            program = _compiled(source, mpi, place) if test and taken < EACH else None
            if program is None:
                continue
            taken += 1
            command = [program, *shlex.split(test.get("args", "")), "-malloc_debug", "0"]
            found.append(Program(name=f"{part}/{source.stem}", command=command, ranks=int(test["nsize"])))
    return [*found, *_windows(mpi, place, sources)]


SUITE = Suite(
    name="petsc",
    origin="Debian source petsc, package petsc-dev",
    version=package_version("libpetsc-real-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output: residual norms, iteration counts, solutions",
    unordered=True,
    tolerance=1e-8,
)
