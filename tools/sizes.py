#!/usr/bin/env python3
"""sizes.py [DIRECTORY…]: functions of the tree that are too long or take too many parameters, one per line; exit status 1 when there are any.

A function has at most 60 lines and 6 parameters (`self` is not counted); what takes more takes a struct. Parameters that somebody else
dictates are not ours to group: those of a function that is named after an MPI procedure (gen/classes.toml lists them), and of what a
crypto plug-in implements (src/aead/plugin.h), or the OpenSSL provider. C programs under tests/ are long lists of MPI calls and are not judged.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lizard

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_PARAMETERS = 60, 6
DIRECTORIES = ("src", "bench", "lab", "gen", "tools", "demo", "docs", "tests")
C_SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".cu"}
OF_PROVIDER = {"pipeline_encrypt_init", "pipeline_update"}  # OSSL_FUNC_cipher_… of OpenSSL 3.5's core_dispatch.h


def mpi_procedures() -> set[str]:
    """{"Send", "Allgather", …}: what the MPI standard names, without its prefix."""
    groups = tomllib.loads((ROOT / "gen/classes.toml").read_text(encoding="utf-8"))["group"]
    return {name.removeprefix("MPI_") for group in groups for name in group["procedures"].split()}


def plugin_functions() -> set[str]:
    """{"seal", "open", …}: the function pointers of a plug-in."""
    return set(re.findall(r"\(\*(\w+)\)\(", (ROOT / "src/aead/plugin.h").read_text(encoding="utf-8")))


def sources(directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            in_tests = path.is_relative_to(ROOT / "tests")
            if path.suffix == ".py" or (path.suffix in C_SUFFIXES and not in_tests):
                yield path


def dictated(path: Path, name: str, procedures: set[str], of_plugins: set[str]) -> bool:
    """Whether somebody else says what parameters this function has."""
    short = re.sub(r"^P?MPI_", "", name.rpartition("::")[2])
    plugs_in = ("plugins" in path.parts and short in of_plugins) or ("provider" in path.parts and short in OF_PROVIDER)
    return path.suffix in C_SUFFIXES and (short in procedures or plugs_in)


@dataclass
class Function:
    path: Path
    line: int
    name: str
    lines: int
    parameters: int  # 0 where somebody else dictates them


def functions(directories: Iterable[Path]) -> Iterator[Function]:
    procedures, of_plugins = mpi_procedures(), plugin_functions()
    for path in sources(directories):
        for found in lizard.analyze_file(str(path)).function_list:
            parameters = [name for name in found.parameters if name not in ("self", "cls")]
            counted = 0 if dictated(path, found.name, procedures, of_plugins) else len(parameters)
            yield Function(path, found.start_line, found.name, found.length, counted)


def oversized(directories: Iterable[Path]) -> list[str]:
    """["lab/cluster.py:204: run takes 13 parameters", …]."""
    found = []
    for function in functions(directories):
        shown = function.path.relative_to(ROOT) if function.path.is_relative_to(ROOT) else function.path
        where = f"{shown}:{function.line}: {function.name}"
        if function.lines > MOST_LINES:
            found.append(f"{where} has {function.lines} lines")
        if function.parameters > MOST_PARAMETERS:
            found.append(f"{where} takes {function.parameters} parameters")
    return found


if __name__ == "__main__":
    lines = oversized([Path(name).resolve() for name in sys.argv[1:]] or [ROOT / name for name in DIRECTORIES])
    print("\n".join([*lines, f"sizes: {len(lines)} functions are too long or take too many parameters"]))
    sys.exit(1 if lines else 0)
