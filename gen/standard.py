"""The procedures of the MPI standard, as PyPI `pympistandard` lists them (the data behind MPI 4.1's and 5.0's language bindings)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pympistandard


@dataclass(frozen=True)
class Parameter:
    """One parameter of a C binding."""

    kind: str  #: the standard's kind, e.g. COMMUNICATOR, RANK, POLYXFER_NUM_ELEM_NNI
    direction: str  #: in, out, inout
    name: str
    declaration: str  #: as C writes it, e.g. "const int recvcounts[]"


@dataclass(frozen=True)
class Procedure:
    """One C binding; a procedure with a large-count twin gives two, e.g. MPI_Send and MPI_Send_c."""

    name: str
    base: str  #: name without the _c of a large-count twin: what a class is given to
    returns: str
    parameters: tuple[Parameter, ...]

    @property
    def communicator(self) -> str | None:
        """Name of the communicator that the call works on; None when it takes none or ends it (MPI_Lookup_name, MPI_Comm_free)."""
        for parameter in self.parameters:
            if parameter.kind == "COMMUNICATOR" and parameter.direction == "in":
                return parameter.name
        return None


def _binding(base: str, isoc: Any) -> Procedure:  # pympistandard has no types
    parameters = tuple(
        Parameter(p._parseset["kind"], p._parseset["param_direction"], p.name, str(p))
        for p in isoc.parameters
    )
    return Procedure(str(isoc.name), base, str(isoc.return_type), parameters)


def procedures() -> dict[str, list[Procedure]]:
    """Every procedure of the standard by name, in the standard's spelling, with its C bindings: none for the two that only Fortran has,
    two where there is a large-count twin."""
    pympistandard.use_api_version(1, force_bundled=True)
    table = {}
    for procedure in pympistandard.PROCEDURES.values():
        name = procedure._parseset["name"]
        bindings = []
        if procedure._parseset["attributes"]["c_expressible"]:
            bindings.append(_binding(name, procedure.express.iso_c))
            if procedure.has_embiggenment():
                bindings.append(_binding(name, procedure.express.embiggen.iso_c))
        table[name] = bindings
    return table
