"""A result and its file, which is what `mpisec report` reads: one JSON object per benchmark that was run.

    {"format": "mpisec-result-1", "benchmark": "pingpong", "title": …, "command": "mpisec bench …", "complete": true,
     "started": UTC, "seconds": …, "conditions": {…}, "rows": [{what, scheme, bytes or class, …}, …]}

A row is one scheme (mpisec, wireguard, …) at one point. Every round of jobs gives it a time and a ratio to plain MPI of the same
round; the file keeps all of them, so that an interrupted run goes on where it was, and their medians with a 95 % interval.
"""

import datetime
import json
import os
import statistics
from pathlib import Path
from typing import Any

from mpisec_bench.interval import LEAST, median_interval
from mpisec_lab.errors import LabError

Row = dict[str, Any]  # a JSON object: what a benchmark program printed, or a row of a result
Point = tuple[tuple[str, Any], ...]
Document = dict[str, Any]  # a result's file

FORMAT = "mpisec-result-1"
POINT = ("what", "class", "bytes", "pairs", "window", "ways", "algorithm")  # what names a point, as far as it applies
EXTRA = ("time_with_barrier_us", "ratio_with_barrier")  # carried along as medians


_ALWAYS = ("command", "complete", "started", "conditions", "rows")  # in every result
_MAY_CHANGE = {"load", "raw_tcp_bits_per_second"}  # between what was measured and what --resume adds


def _steady(value: object) -> object:
    """A condition without what may change, in overlays too."""
    if not isinstance(value, dict):
        return value
    return {name: _steady(inner) for name, inner in value.items() if name not in _MAY_CHANGE}


def point(row: Row) -> Point:
    """The fields of a row that name its point, as a tuple of (name, value)."""
    return tuple((name, row[name]) for name in POINT if name in row)


def require_place(path: str | Path) -> None:
    """Raises LabError where no result could be written; makes the directory that it goes to."""
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}") from error
    if place.is_dir():
        raise LabError(f"{path} is a directory: the result needs the name of a file")
    if not os.access(place.parent, os.W_OK | os.X_OK) or (place.exists() and not os.access(place, os.W_OK)):
        raise LabError(f"{path} cannot be written: permission denied")


class Result:
    """Rows that grow by rounds; written to `path` (None: kept) after each, so that nothing is lost."""

    def __init__(self, benchmark: str, title: str, command: str, conditions: dict[str, object], path: str | Path | None = None) -> None:
        self.head = {"format": FORMAT, "benchmark": benchmark, "title": title, "command": command}
        self.conditions = conditions
        self.path = Path(path) if path else None
        self.complete = False
        self.seconds = 0.0  # measured so far
        self._started = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._samples: dict[tuple[Point, str], dict[str, list[float]]] = {}  # (point, scheme) -> {name: [values]}
        self._capped: set[Point] = set()

    def add(self, row: Row, scheme: str, plain_us: float | None = None) -> None:
        """One job's row of a scheme: {…point, "time_us", and maybe its own "plain_us" and "ratio"}, or beside `plain_us`."""
        samples = self._samples.setdefault((point(row), scheme), {})
        plain_us = row.get("plain_us", plain_us)
        ratio = row.get("ratio", row["time_us"] / plain_us)
        values = {"time_us": row["time_us"], "plain_us": plain_us, "ratio": ratio} | {name: row[name] for name in EXTRA if name in row}
        for name, value in values.items():
            samples.setdefault(name, []).append(value)

    def ratios(self, point_: Point, scheme: str) -> list[float]:
        """The ratios of a point so far, one per round."""
        return self._samples.get((point_, scheme), {}).get("ratio", [])

    def points(self) -> list[Point]:
        """All points so far, in the order of their first appearance."""
        return list(dict.fromkeys(where for where, _ in self._samples))

    def cap(self, where: Point) -> None:
        """Remembers that a point was given up before its interval was narrow enough."""
        self._capped.add(where)

    def document(self) -> Document:
        """The whole as a dict, with medians."""
        return self.head | {
            "complete": self.complete, "started": self._started, "seconds": round(self.seconds, 1), "conditions": self.conditions,
            "rows": [self._row(where, scheme, samples) for (where, scheme), samples in self._samples.items()],
        }

    def _row(self, where: Point, scheme: str, samples: dict[str, list[float]]) -> Row:
        median, low, high = median_interval(samples["ratio"])
        row = dict(where) | {"scheme": scheme} | {name: statistics.median(values) for name, values in samples.items()}
        row |= {"ratio": median, "rounds": len(samples["ratio"])}
        if row["rounds"] >= LEAST:
            row |= {"ratio_low": low, "ratio_high": high}
        if where in self._capped or row["rounds"] < LEAST:
            row["capped"] = True
        return row | {"samples": samples}

    def write(self) -> None:
        """Replaces the file as a whole."""
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(self.path.name + ".unfinished")
        unfinished.write_text(json.dumps(self.document(), indent=1) + "\n", encoding="utf-8")
        os.replace(unfinished, self.path)

    def resume(self) -> None:
        """Takes over what an earlier run left in the file; LabError when that was another command's. No file: nothing."""
        if self.path is None or not self.path.exists():
            return
        left = read(self.path)
        if left["command"] != self.head["command"]:
            raise LabError(f"{self.path} holds the result of `{left['command']}`: give another --output, or leave --resume out")
        for name in {*left["conditions"], *self.conditions} - _MAY_CHANGE:
            was, now = left["conditions"].get(name), self.conditions.get(name)
            if _steady(was) != _steady(now):
                raise LabError(f"{self.path} was measured with {name} {was}, which now is {now}: give another --output")
        self.complete, self._started, self.seconds = left["complete"], left["started"], left.get("seconds", 0.0)
        try:
            for row in left["rows"]:
                self._samples[point(row), row["scheme"]] = row["samples"]
                if row.get("capped") and self.complete:
                    self._capped.add(point(row))
        except (AttributeError, KeyError, TypeError) as error:
            raise LabError(f"{self.path} is no result of mpisec bench: it has a row without {error}") from error


def read(path: str | Path) -> Document:
    """The document in a file; LabError when it is none."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{path} is no result of mpisec bench: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise LabError(f"{path} is no result of mpisec bench: its format is not {FORMAT}")
    if lacking := [name for name in _ALWAYS if name not in document]:
        raise LabError(f"{path} is no result of mpisec bench: it lacks {lacking[0]}")
    return document
