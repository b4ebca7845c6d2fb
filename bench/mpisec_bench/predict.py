"""The all-gather paper's measurements beside what the simulation says of them.

    mpisec sim compare-paper
    mpisec sim compare-paper --tables III,IV,V,VI --markdown

A row is right when the scheme that the paper found best takes at most 10% longer in the simulation than the simulation's
best. The models were fitted to Tables III and VI, not to IV and V.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mpisec_bench import paper
from mpisec_bench.simulated import Predicted, Simulation
from mpisec_lab import places
from mpisec_lab.errors import LabError

WITHIN = 0.10
FITTED = ("III", "VI")
Compared = dict[str, list[tuple[paper.Row, Predicted]]]


def compare(mpisec: Path, names: Sequence[str] = FITTED, model: str | None = None) -> Compared:
    """Table name -> list of (Row, Predicted)."""
    tables = paper.tables()
    return {
        name: list(
            zip(tables[name].rows, Simulation(mpisec, model or tables[name].cluster).predict(tables[name]), strict=True)
        )
        for name in names
    }


def right(row: paper.Row, predicted: Predicted) -> bool:
    """Whether the paper's best scheme is the simulation's, or within 10% of it."""
    return predicted.excess(row.scheme) <= WITHIN


def count(compared: Compared) -> tuple[int, int]:
    """(rows that are right, all rows)."""
    rows = [right(*pair) for pairs in compared.values() for pair in pairs]
    return sum(rows), len(rows)


def _overhead(time: float, plain: float) -> str:
    return f"{100 * (time / plain - 1):+.0f}%"


HEADINGS = [
    "size", "MPI, µs", "simulated", "Naive", "simulated", "best", "simulated", "best scheme", "simulated", "named one's",
    "right",
]  # fmt: skip


def cells(row: paper.Row, predicted: Predicted) -> list[str]:
    """A row of the comparison, as text. Overheads are each against its own unencrypted MPI."""
    best = predicted.best()
    return [
        row.size, f"{row.plain:.1f}", f"{predicted.plain:.1f}",
        _overhead(row.naive, row.plain), _overhead(predicted.naive, predicted.plain),
        _overhead(row.best, row.plain), _overhead(predicted.times[best], predicted.plain),
        row.scheme, best, f"{1 + predicted.excess(row.scheme):.2f}", "yes" if right(row, predicted) else "no",
    ]  # fmt: skip


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def report(compared: Compared, markdown: bool = False) -> str:
    """The comparison as text."""
    parts = []
    for name, pairs in compared.items():
        table = paper.tables()[name]
        parts.append(f"Table {name}: {table.cluster}, {table.ranks} ranks on {table.nodes} nodes, {table.placement}\n")
        rows = [HEADINGS] + [cells(*pair) for pair in pairs]
        parts.append((_markdown if markdown else _aligned)(rows) + "\n")
    good, all_rows = count(compared)
    parts.append(f"The best scheme is named, or within 10% of the simulation's best: {good} of {all_rows} rows, {100 * good / all_rows:.0f}%")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="mpisec sim compare-paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", default=",".join(FITTED), help="of III, IV, V and VI (III,VI)")
    parser.add_argument("--model", help="this model for all of them; default: each cluster's own")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    names = arguments.tables.split(",")
    if unknown := set(names) - set(paper.tables()):
        parser.error(f"no such table: {', '.join(sorted(unknown))}")
    try:
        print(report(compare(places.find_mpisec(), names, arguments.model), arguments.markdown))
    except LabError as error:
        sys.exit(f"mpisec sim compare-paper: {error}")


if __name__ == "__main__":
    main()
