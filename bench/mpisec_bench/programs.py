"""The application kernels (bench/kernels, bench/fortran): their names, and compiling them for an MPI.

All but the ping-pong are run as `PROGRAM CLASS` with one of CLASSES and print one line of JSON
(bench/kernels/kernel.hpp). Each source says which numbers of ranks its problem can be dealt out to;
1, 2, 3, 4, 6 and 8 suit all.
"""

from pathlib import Path

_BENCH = Path(__file__).resolve().parent.parent

CLASSES = ("S", "W", "A", "B")
KERNELS = ("cg", "ft", "is", "mg", "bt", "lu")
FORTRAN = ("lu-fortran", "pingpong-fortran")  # only where the MPI comes with Fortran: Debian's

# The C++ bindings that some mpi.h still bring are not used and would only be linked in.
_CXX_FLAGS = ("-O3", "-std=c++20", "-Wextra", "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX")
_FORTRAN_FLAGS = ("-O3", "-fallow-argument-mismatch")  # "use mpi": buffers of several types in one file


def source(name: str) -> Path:
    """The file of a program of KERNELS or FORTRAN."""
    if name in FORTRAN:
        return _BENCH / "fortran" / f"{name.removesuffix('-fortran')}.f90"
    return _BENCH / "kernels" / f"{name}.cpp"


def flags(name: str) -> tuple[str, ...]:
    """Its compiler options."""
    return _FORTRAN_FLAGS if name in FORTRAN else _CXX_FLAGS
