"""Generates, into the build directory, what follows from the standard's API list, one family's mpi.h and gen/classes.toml.

generate.py shim --output DIR --compiler CC -- FLAGS…    real_table.inc, refusals.inc, wrappers.cpp
generate.py profile --output FILE --compiler CC -- FLAGS…  what `mpisec profile` preloads
generate.py calls --output FILE --compiler CC -- FLAGS…  a C program that calls everything that is refused
generate.py docs --output FILE                           the table as a page
generate.py check                                        every procedure has one class
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import calls
import classes
import headers
import profile_calls
import standard
import wrappers

import docs


def write_if_changed(path: Path, text: str) -> None:
    """Leaves the file's time alone when nothing changed, so that nothing is compiled again."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def family(
    compiler: str, flags: list[str]
) -> tuple[list[standard.Procedure], dict[str, classes.Group], set[str]]:
    """What a family's headers declare: bindings with arguments, the class of each, and all names called MPI_… that have a class."""
    found = headers.declared(compiler, flags)
    if "MPI_Send" not in found:
        sys.exit(
            f"{compiler} finds no MPI_Send in mpi.h with {' '.join(flags)}: is that an MPI's include directory?"
        )
    class_of = classes.class_of(classes.load())
    bindings = [
        binding for group in standard.procedures().values() for binding in group if binding.name in found
    ]
    names = {b.name for b in bindings} | (found & set(class_of))
    extensions = headers.extensions(compiler, flags)
    for extension in extensions:
        class_of.setdefault(extension.name, classes.UNKNOWN_EXTENSION)
    return bindings + extensions, class_of, names


def shim(output: Path, compiler: str, flags: list[str]) -> None:
    bindings, class_of, names = family(compiler, flags)
    earlier = headers.earlier_names(compiler, flags, bindings, set(class_of))
    table = "".join(f"MPISEC_PROCEDURE({name.removeprefix('MPI_')})\n" for name in sorted(names))
    write_if_changed(output / "real_table.inc", table)
    write_if_changed(output / "refusals.inc", wrappers.refusals(bindings, class_of))
    write_if_changed(output / "wrappers.cpp", wrappers.render(bindings, class_of, earlier))


def profile(output: Path, compiler: str, flags: list[str]) -> None:
    bindings, _, _ = family(compiler, flags)
    write_if_changed(output, profile_calls.render(bindings))


def refused_calls(output: Path, compiler: str, flags: list[str]) -> None:
    bindings, class_of, _ = family(compiler, flags)
    write_if_changed(output, calls.render(bindings, class_of))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("shim", "profile", "calls"):
        command = commands.add_parser(name)
        command.add_argument("--output", type=Path, required=True)
        command.add_argument("--compiler", required=True)
        command.add_argument("flags", nargs="*")
    command = commands.add_parser("docs")
    command.add_argument("--output", type=Path, required=True)
    commands.add_parser("check")
    arguments = parser.parse_args()

    problems = classes.problems(classes.load(), set(standard.procedures()))
    if problems:
        sys.exit("\n".join(problems))
    if arguments.command == "shim":
        shim(arguments.output, arguments.compiler, arguments.flags)
    elif arguments.command == "profile":
        profile(arguments.output, arguments.compiler, arguments.flags)
    elif arguments.command == "calls":
        refused_calls(arguments.output, arguments.compiler, arguments.flags)
    elif arguments.command == "docs":
        write_if_changed(arguments.output, docs.render(classes.load(), standard.procedures()))


if __name__ == "__main__":
    main()
