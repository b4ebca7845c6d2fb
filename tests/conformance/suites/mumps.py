"""MUMPS' own simple tests: a sparse direct solver in four precisions."""

from harness.description import Program, Suite, here, package_version

HOME = "/usr/lib/mumps"
INPUT = {"s": "real", "d": "real", "c": "cmplx", "z": "cmplx"}


def programs(mpi, place):
    """A program per precision; rank 0 reads the problem from standard input."""
    here(HOME)
    return [
        Program(name=f"{kind}simpletest", command=["sh", "-c", f"exec {HOME}/{kind}simpletest < {HOME}/input_simpletest_{kind_of_input}"],
                sealed_env={"MPISEC_MPI": "openmpi"})
        for kind, kind_of_input in INPUT.items()
    ]


SUITE = Suite(
    name="mumps",
    origin="Debian package mumps-test",
    version=package_version("mumps-test"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output but for lines with times",
    drop=(r"(?i)\b(elapsed )?time\b",),
)
