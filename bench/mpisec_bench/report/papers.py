"""What others measured (data/papers.toml, data/allgather_paper.toml), as ratios that stand beside ours."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mpisec_bench import paper as allgather
from mpisec_bench.paper import bytes_of

_DATA = Path(__file__).resolve().parent.parent / "data" / "papers.toml"
PaperRow = tuple[str, Sequence[float]]  # size or kernel as printed, one value per column
SHAPES = "Other machines, networks and years: compare the shapes, not the heights."  # in captions
_CALLS = {"window": "pairs"}  # what the papers' numbers are filed under


@dataclass(frozen=True)
class Paper:
    short: str
    title: str
    setting: str


@dataclass(frozen=True)
class Table:
    """A printed table. rows: (size or kernel as printed, one value per column)."""

    paper: Paper
    name: str
    what: str
    title: str
    nodes: int
    ranks: int
    unit: str
    columns: tuple[str, ...]
    against: dict[str, str]  # encrypted column -> the unencrypted column of the same network
    mechanism: dict[str, str]  # encrypted column -> scheme of ours that works the same way
    network: str
    rows: tuple[PaperRow, ...]

    def ratio(self, row: PaperRow, column: str, against: str | None = None) -> float:
        """Time in a column over that of its unencrypted one (or `against`); throughputs are inverted."""
        base = row[1][self.columns.index(against or self.against[column])]
        value = row[1][self.columns.index(column)]
        return base / value if self.unit == "MB/s" else value / base

    def total(self, column: str) -> float:
        """The ratio of the sums over all rows, for which Naser et al. argue: means of ratios mean nothing."""
        sums = [sum(values) for values in zip(*(row[1] for row in self.rows), strict=True)]
        return self.ratio(("total", sums), column)


@dataclass(frozen=True)
class PaperSeries:
    """Ratios of one scheme in one paper: points are (bytes or kernel, ratio)."""

    label: str
    paper: Paper
    mechanism: str  # a scheme of ours, or a library's name
    points: tuple[tuple[int | str, float], ...]


@cache
def _read() -> dict[str, Any]:
    with _DATA.open("rb") as file:
        return tomllib.load(file)


def paper(key: str) -> Paper:
    return Paper(**_read()["paper"][key])


@cache
def tables(what: str | None = None) -> tuple[Table, ...]:
    """The tables about one call (or all of them), all-gather's own paper excepted."""
    return tuple(
        Table(
            paper(table["paper"]),
            table["name"],
            table["what"],
            table["title"],
            table["nodes"],
            table["ranks"],
            table["unit"],
            tuple(table["columns"]),
            table["against"],
            table.get("mechanism", {}),
            table.get("network", ""),
            tuple((row[0], tuple(row[1:])) for row in table["rows"]),
        )
        for table in _read()["table"]
        if what in (None, table["what"])
    )


def facts(what: str) -> list[tuple[Paper, dict[str, Any]]]:
    """Single numbers: [(Paper, {"setting", "quantity", "value", "unit"})]."""
    if what == "provider":  # the paper whose table it repeats; its numbers stand beside the libraries, too
        return [(source, fact) for source, fact in facts("crypto") if source == paper("ipp")]
    if what == "engine":  # likewise
        return [(source, fact) for source, fact in facts("crypto") if source == paper("jacquin")]
    filed = _CALLS.get(what, what)
    return [(paper(fact["paper"]), fact) for fact in _read()["fact"] if fact["what"] == filed]


def crypto_points(cipher: str) -> tuple[dict[str, list[tuple[int, float]]], Paper]:
    """{library: [(bytes, MB/s of sealing followed by opening)]} and the paper they are from."""
    points: dict[str, list[tuple[int, float]]] = {}
    for block in _read()["crypto"]:
        if block["cipher"] == cipher:
            for library, size, speed in block["rows"]:
                points.setdefault(library, []).append((bytes_of(size), speed))
    return points, paper("naser")


def _position(text: str, what: str) -> int | str:
    return text if what == "kernels" else bytes_of(text)


def _of_table(table: Table) -> Iterator[PaperSeries]:
    for column in table.against:
        points = [(_position(row[0], table.what), table.ratio(row, column)) for row in table.rows]
        for extra in _read()["point"]:
            if (paper(extra["paper"]), extra["what"], extra["network"]) == (
                table.paper,
                table.what,
                table.network,
            ):
                points += [
                    (bytes_of(size), 1 + percent / 100)
                    for name, size, percent in extra["rows"]
                    if name == column
                ]
        label = f"{column}, {table.network}" if table.network else column
        if table.name == "II" and column == "Antrea, IPsec":  # it is in Table I as well
            label += " (Singularity)"
        if table.what == "kernels":
            points.append(("total", table.total(column)))
        yield PaperSeries(label, table.paper, table.mechanism.get(column, column), tuple(points))


def series_by_paper(what: str) -> list[tuple[Paper, list[str], list[PaperSeries]]]:
    """[(Paper, [names of tables], [PaperSeries])] for a call: each is one figure beside ours."""
    found: dict[Paper, tuple[list[str], list[PaperSeries]]] = {}
    for table in tables(what):
        names, series = found.setdefault(table.paper, ([], []))
        names.append(table.name)
        series += _of_table(table)
    if what == "allgather":
        names, series = found.setdefault(paper("lahijani"), ([], []))
        for printed in (allgather.tables()[name] for name in ("III", "VI")):
            names.append(printed.name)
            where = printed.cluster.title()
            series += [
                PaperSeries(
                    f"naive, {where}",
                    paper("lahijani"),
                    "naive",
                    tuple((row.bytes, row.naive / row.plain) for row in printed.rows),
                ),
                PaperSeries(
                    f"best, {where}",
                    paper("lahijani"),
                    "mpisec",
                    tuple((row.bytes, row.best / row.plain) for row in printed.rows),
                ),
            ]
    return [(source, names, series) for source, (names, series) in found.items()]


def allgather_tables() -> tuple[Paper, list[allgather.Table]]:
    """Tables III to VI of Lahijani et al., with their Paper."""
    return paper("lahijani"), list(allgather.tables().values())
