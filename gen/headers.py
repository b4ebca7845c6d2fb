"""Which procedures a family's mpi.h declares."""

from __future__ import annotations

import re
import subprocess


def declared(compiler: str, flags: list[str]) -> set[str]:
    """Names of the functions called MPI_… that `#include <mpi.h>` declares with these compiler flags.

    Asks the C preprocessor, so conditional parts of the header count exactly when a program would see them. What MPI only
    defines as a macro (MPI_Aint_add in Open MPI) is not a function and so not among them."""
    text = subprocess.run(
        [compiler, "-E", "-P", "-x", "c", *flags, "-"], input="#include <mpi.h>\n", capture_output=True, text=True, check=True
    ).stdout
    # A declaration's name follows its return type; a call or a parameter type follows punctuation.
    return set(re.findall(r"[\w*]\s+\*?(MPI_\w+)\s*\(", text))
