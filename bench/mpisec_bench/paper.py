"""The measurements of the all-gather paper (data/allgather_paper.toml), in microseconds."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DATA = Path(__file__).with_name("data") / "allgather_paper.toml"

# The algorithms that the paper compares, by MPIsec's names; HSC is MPIsec's own.
SCHEMES = ["naive", "o-ring", "o-rd", "o-rd2", "c-ring", "c-rd", "hs1", "hs2"]


@dataclass(frozen=True)
class Row:
    size: str  # as printed
    bytes: int
    plain: float  # unencrypted MPI
    naive: float
    best: float
    scheme: str  # the best one


@dataclass(frozen=True)
class Table:
    name: str
    cluster: str
    ranks: int
    nodes: int
    placement: str
    ring_from: int  # bytes from which the unencrypted MPI uses its ring
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Pair:
    """One algorithm without and with encryption."""

    scheme: str
    plain: float
    sealed: float


def bytes_of(size: str) -> int:
    """64KB -> 65536."""
    for suffix, factor in (("KB", 1 << 10), ("MB", 1 << 20), ("B", 1)):
        if size.endswith(suffix):
            return int(size.removesuffix(suffix)) * factor
    raise ValueError(size)


def _row(size: str, latency: float, naive: float, best: float, scheme: str) -> Row:
    return Row(
        size, bytes_of(size), latency, latency * (1 + naive / 100), latency * (1 + best / 100), scheme.lower()
    )


def _read() -> dict[str, Any]:
    with _DATA.open("rb") as file:
        return tomllib.load(file)


def tables() -> dict[str, Table]:
    """Name -> Table."""
    return {
        table["name"]: Table(
            table["name"], table["cluster"], table["ranks"], table["nodes"], table["placement"],
            bytes_of(table["mpi_ring_from"]), tuple(_row(*row) for row in table["rows"]),
        )
        for table in _read()["table"]
    }  # fmt: skip


def pairs() -> list[tuple[str, int, list[Pair]]]:
    """(cluster, bytes, Pairs) of the figures in the text; ranks, nodes and placement are Table III's."""
    return [
        (text["cluster"], bytes_of(text["size"]), [Pair(s.lower(), a * 1e3, b * 1e3) for s, a, b in text["rows"]])
        for text in _read()["text"]
    ]
