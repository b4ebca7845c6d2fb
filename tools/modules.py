#!/usr/bin/env python3
"""modules.py [--tidy]: a table of the modules and layers under src: files, lines, includes that point upward, the longest function, the
longest list of parameters, and functions over the limits; exit status 1 when a finding is not 0.

With --tidy also what clang-tidy finds in each, which takes minutes where sources changed since `make tidy`.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import layers
import sizes
import tidy

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
SUFFIXES = {".cpp", ".hpp", ".c", ".h", ".cu", ".def"}


@dataclass
class Row:
    """What is known of a module, or of a layer in one."""

    files: list[Path] = field(default_factory=list)
    lines: int = 0
    upward: int = 0
    longest: int = 0
    parameters: int = 0
    oversized: int = 0
    tidy: int | None = None

    def add(self, other: "Row") -> None:
        self.files += other.files
        self.lines += other.lines
        self.upward += other.upward
        self.longest, self.parameters = max(self.longest, other.longest), max(self.parameters, other.parameters)
        self.oversized += other.oversized
        if other.tidy is not None:
            self.tidy = (self.tidy or 0) + other.tidy

    def cells(self) -> list[str]:
        counted = [len(self.files), self.lines, self.upward, self.longest, self.parameters, self.oversized]
        return [str(number) for number in counted] + ([] if self.tidy is None else [str(self.tidy)])

    def findings(self) -> int:
        return self.upward + self.oversized + (self.tidy or 0)


def name_of(path: Path) -> str:
    """"shim/p2p": the layer of a file, or its module."""
    module, layer = layers.place(path.relative_to(SOURCE).parent.as_posix())
    return f"{module}/{layer}" if layer else module


def order() -> list[str]:
    """All modules and layers in the order of tools/layers.py, then those that it does not list."""
    listed = [f"{module}/{layer}" if layer else module for module in layers.MODULES for layer in layers.LAYERS.get(module, ("",))]
    return listed + sorted({name_of(path) for path in SOURCE.rglob("*") if path.suffix in SUFFIXES} - set(listed))


def measured() -> dict[str, Row]:
    rows = {name: Row() for name in order()}
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        text = path.read_text(encoding="utf-8")
        upward = len(layers.upward_of(path, SOURCE)) if path.suffix in (".cpp", ".hpp") else 0
        rows[name_of(path)].add(Row([path], text.count("\n"), upward))
    for function in sizes.functions([SOURCE]):
        too_large = (function.lines > sizes.MOST_LINES) + (function.parameters > sizes.MOST_PARAMETERS)
        rows[name_of(function.path)].add(Row(longest=function.lines, parameters=function.parameters, oversized=too_large))
    return rows


def add_tidy(rows: dict[str, Row], judge: tidy.Judge) -> None:
    for row in rows.values():
        row.tidy = 0
    sources = sorted(path for path in judge.commands if path.is_relative_to(SOURCE))
    for source, found in tidy.all_findings(judge, sources):
        rows[name_of(source)].add(Row(tidy=len(found)))


def print_table(rows: dict[str, Row]) -> int:
    total = Row()
    for row in rows.values():
        total.add(row)
    heads = ["module", "files", "lines", "includes up", "longest function", "most parameters", "over the limits"]
    heads += ["clang-tidy"] if total.tidy is not None else []
    table = [[name, *row.cells()] for name, row in rows.items() if row.files] + [["all", *total.cells()]]
    widths = [max(len(cell) for cell in column) for column in zip(heads, *table, strict=True)]
    for line in (heads, *table):
        print("  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]).rstrip())
    return total.findings()


def main(arguments: list[str]) -> int:
    rows = measured()
    if arguments == ["--tidy"]:
        judge = tidy.ready(named=False)
        if isinstance(judge, str):
            print(f"tidy: {judge}")
            return 2
        add_tidy(rows, judge)
    elif arguments:
        print(__doc__.partition(":")[0])
        return 2
    return 1 if print_table(rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
