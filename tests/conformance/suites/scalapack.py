"""ScaLAPACK's own tests, and those of its communication layer (BLACS) and of the parallel BLAS."""

from pathlib import Path

from harness.description import Program, Suite, here, package_version

HOME = Path("/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests")


def programs(mpi, place):
    """The solvers in double precision, the communication layer from Fortran and from C, the BLAS real and complex."""
    here(HOME)
    solvers = [Program(name=path.name, command=[path], files={data.name: data for data in HOME.glob("*.dat")})
               for path in sorted(HOME.glob("xd*"))]
    blacs = [Program(name=f"BLACS/{path.name}", command=[path], files={data.name: data for data in (HOME / "BLACS").glob("*.dat")})
             for path in sorted((HOME / "BLACS").glob("x?btest"))]
    blas = [Program(name=f"PBLAS/{path.name}", command=[path], outputs=[f"P{path.name[0].upper()}BLAS{path.name[3]}TST.SUMM"],
                    files={data.name: data for data in (HOME / "PBLAS").glob("*.dat")})
            for path in sorted((HOME / "PBLAS").glob("[dz]pb?tst"))]
    return [*blacs, *blas, *solvers]


SUITE = Suite(
    name="scalapack",
    origin="Debian package scalapack-mpi-test",
    version=package_version("scalapack-mpi-test"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output and summary files; of tables the lines' columns of seconds and MFLOPS are left out, and the residuals of the "
    "eigenvalue tests, of which the verdict counts: they depend on the order in which messages come",
    replace=(
        # Eigenvalue tests: “2 1 1 2 8 N 0.00 -1.00 1.3 0.74 PASSED EVD”: after the kind of request times, then residuals, which
        # change from run to run, for the BLACS add in the order in which messages come
        (r"^(\s*(?:\d+\s+){5,6}[NY])\s+-?[\d.].*?\b(PASSED|FAILED)", r"\1 \2"),
        # “WALL    100   2   1   2     0.00     0.01    12.34 PASSED”: kind of time, sizes, times, rate, residual, verdict
        (r"^(WALL|CPU)\b.*?(PASSED|FAILED|BYPASS)", r"\1 \2"),
        (r"^\s*(WALL|CPU)\s.*$", r"\1"),
    ),
    drop=(r"(?i)seconds|mflops|time|^WALL|^CPU",),
)
