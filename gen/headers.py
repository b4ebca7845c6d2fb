"""Which procedures a family's mpi.h declares."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

from standard import Parameter, Procedure


def _preprocessed(compiler: str, flags: list[str]) -> str:
    program = "#include <mpi.h>\n#if defined(OPEN_MPI)\n#include <mpi-ext.h>\n#endif\n"
    command = [compiler, "-E", "-P", "-x", "c", *flags, "-"]
    return subprocess.run(command, input=program, capture_output=True, text=True, check=True).stdout


def declared(compiler: str, flags: list[str]) -> set[str]:
    """Names of the functions called MPI_… that `#include <mpi.h>` declares with these compiler flags.

    Asks the C preprocessor, so conditional parts of the header count exactly when a program would see them. What MPI only
    defines as a macro (MPI_Aint_add in Open MPI) is not a function and so not among them."""
    # A declaration's name follows its return type; a call or a parameter type follows punctuation.
    return set(re.findall(r"[\w*]\s+\*?(MPI_\w+)\s*\(", _preprocessed(compiler, flags)))


def extensions(compiler: str, flags: list[str]) -> list[Procedure]:
    """The functions called MPIX_… that take a communicator, or look at a request, which may be MPIsec's.

    They are the library's own, so their declarations are all there is to know of them."""
    found = []
    for name, text in re.findall(
        r"\bint\s+(MPIX_\w+)\s*\(([^;]*?)\)\s*(?:__attribute__|;)", _preprocessed(compiler, flags)
    ):
        parameters = tuple(_parameter(" ".join(part.split())) for part in text.split(","))
        procedure = Procedure(name, name, "int", parameters)
        if procedure.communicator or any(re.fullmatch(r"MPI_Request \w+", each.declaration) for each in parameters):
            found.append(procedure)
    return found


def earlier_names(
    compiler: str, flags: list[str], bindings: list[Procedure], classed: set[str]
) -> list[Procedure]:
    """Of Open MPI: procedures of the standard by the names that earlier versions of the library had for them as extensions. Its present
    headers do not declare these, but programs that were built with earlier ones call them."""
    if "ompi_communicator_t" not in _preprocessed(compiler, flags):
        return []
    declared_now = {extension.name for extension in extensions(compiler, flags)}
    return [
        replace(binding, name=earlier, base=earlier)
        for binding in bindings
        if (earlier := binding.name.replace("MPI_", "MPIX_", 1)) in classed - declared_now
    ]


def _parameter(declaration: str) -> Parameter:
    kind = (
        "COMMUNICATOR"
        if re.fullmatch(r"MPI_Comm \w+", declaration)
        else "DATATYPE"
        if "MPI_Datatype" in declaration
        else ""
    )
    kind = "OPERATION" if declaration.startswith("MPI_Op ") else kind
    name = re.search(r"(\w+)(\[\])?$", declaration)
    return Parameter(kind, "in", name[1] if name else "", declaration)
