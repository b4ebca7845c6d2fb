"""Reading result files ("format": "mpisec-result-1", docs/report.md) and refusing what cannot be one.

Times are microseconds (milliseconds become such), ratios time under the scheme / plain time; low and high
bound the 95 % interval of the median ratio.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpisec_bench.collectives import algorithms
from mpisec_lab.errors import LabError

FORMAT = "mpisec-result-1"
BENCHMARKS = ("pingpong", "pairs", "collective", "kernels", "external", "startup", "crypto", "engine", "provider")  # kinds: where a result stands on the page
# What stands elsewhere than under its command's name; every collective does, too.
_COMMANDS = {"mbw": "pairs", "partitioned": "external", "rma": "external", "io": "external"}


Fields = dict[str, Any]  # a JSON object


class ReportError(Exception):
    """A sentence for the user: which file or setting, and what to do about it."""


@dataclass(frozen=True)
class Measurement:
    """One row: a scheme against plain MPI at one size, or one kernel."""

    what: str
    scheme: str
    ratio: float
    bytes: int | None = None
    kernel_class: str = ""
    algorithm: str = ""
    pairs: int | None = None
    window: int | None = None
    ways: int | None = None
    plain_us: float | None = None
    time_us: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int | None = None
    capped: bool = False
    with_barrier: float | None = None  # ratio of calls with the barriers before them


@dataclass(frozen=True)
class CryptoMeasurement:
    """One row of `mpisec bench crypto`: GB/s of all threads together."""

    library: str
    version: str
    cipher: str
    bytes: int
    threads: int
    seal: float
    open: float
    memcpy: float | None = None
    chosen: bool = False  # what MPISEC_AEAD=auto takes here


@dataclass(frozen=True)
class ProviderMeasurement:
    """One row of `mpisec bench provider`: how many times as fast as OpenSSL and as pure software, per contestant."""

    mode: str
    bits: int
    bytes: int
    direction: str
    cycles: dict[str, float]
    over_openssl: dict[str, float]
    over_software: dict[str, float]


@dataclass(frozen=True)
class EngineMeasurement:
    """One row of `mpisec bench engine`: one operation at one size with some threads."""

    operation: str
    kind: str
    bytes: int
    threads: int
    gb_per_s: float
    efficiency: float
    low: float
    high: float
    thread_s_per_gb: tuple[float, ...]
    communicating_s_per_gb: float


@dataclass(frozen=True)
class Result:
    """One file."""

    key: str  # from the file's name; unique, fit for names of files
    file: str
    benchmark: str
    title: str
    command: str
    complete: bool
    started: str
    conditions: Fields
    rows: tuple[Measurement, ...] = field(repr=False)
    crypto: tuple[CryptoMeasurement, ...] = field(default=(), repr=False)  # instead of rows
    provider: tuple[ProviderMeasurement, ...] = field(default=(), repr=False)  # instead of rows
    engine: tuple[EngineMeasurement, ...] = field(default=(), repr=False)  # instead of rows

    @property
    def of_jobs(self) -> bool:
        """Whether MPI jobs were measured: else there are no ranks, links and plain times."""
        return self.benchmark not in ("crypto", "engine", "provider")

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.crypto and not self.provider and not self.engine

    @property
    def anchor(self) -> str:
        """The id of its part of the page."""
        return f"run-{self.key}"


def find_files(names: Iterable[str]) -> list[Path]:
    """The files meant by names of files and directories, in order; of a directory its *.json, at any depth.

    Raises ReportError for a name that does not exist and when there is nothing to read.
    """
    found: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            inside = sorted(path.rglob("*.json"))
            if not inside:
                raise ReportError(
                    f"the directory {name} holds no .json file: give it the results of mpisec bench"
                )
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise ReportError(f"there is no file or directory {name}")
    return list(dict.fromkeys(found))


def read_all(files: Iterable[Path]) -> tuple[list[Result], list[str]]:
    """([Result], [sentences about files that could not be read])."""
    results: list[Result] = []
    complaints: list[str] = []
    keys: set[str] = set()
    for path in files:
        try:
            results.append(read(path, keys))
        except ReportError as error:
            complaints.append(str(error))
    return results, complaints


def read(path: str | Path, keys: set[str] | None = None) -> Result:
    """The Result in a file; `keys` are those already given. Raises ReportError."""
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
        ) from error
    except json.JSONDecodeError as error:
        empty = not path.read_text(encoding="utf-8").strip()
        why = (
            "it is empty"
            if empty
            else f"it is no JSON from line {error.lineno} on ({error.msg}); was the run interrupted?"
        )
        raise ReportError(f"{path} cannot be used: {why}") from error
    try:
        return _result(document, path, keys if keys is not None else set())
    except (ReportError, TypeError, ValueError, OverflowError) as error:
        raise ReportError(f"{path} cannot be used: {error}") from error


def _kind(name: Any) -> str:
    """Where a command's results stand on the page. Raises ReportError."""
    kind: str = _COMMANDS.get(name, name)
    try:
        if kind not in BENCHMARKS and name in algorithms():
            kind = "collective"
        elif kind not in BENCHMARKS:
            raise ReportError(f"the benchmark {name!r} is unknown; known are {', '.join((*BENCHMARKS, *_COMMANDS, *algorithms()))}")
    except LabError as error:
        raise ReportError(str(error)) from error
    return kind


def _result(document: Any, path: Path, keys: set[str]) -> Result:
    if not isinstance(document, dict) or "format" not in document:
        raise ReportError(f'it is not a result of mpisec bench ("format": "{FORMAT}" is missing)')
    if document["format"] != FORMAT:
        raise ReportError(f'its format is {document["format"]!r}; this program reads "{FORMAT}"')
    benchmark = _kind(document.get("benchmark"))
    rows, conditions = document.get("rows"), document.get("conditions", {})
    if not isinstance(rows, list) or not isinstance(conditions, dict):
        raise ReportError('"rows" must be a list and "conditions" an object')
    measured: list[Measurement] = []
    crypto: list[CryptoMeasurement] = []
    provider: list[ProviderMeasurement] = []
    engine: list[EngineMeasurement] = []
    for number, row in enumerate(rows, 1):
        try:
            if not isinstance(row, dict):
                raise ReportError("is no object")
            if benchmark == "crypto":
                crypto.append(_crypto(row))
            elif benchmark == "provider":
                provider.append(_provider(row))
            elif benchmark == "engine":
                engine.append(_engine(row))
            else:
                measured.append(_measurement({"window": conditions.get("window")} | row, benchmark))
        except ReportError as error:
            raise ReportError(f"row {number} {error}") from error
    return Result(
        _key(path.stem, keys),
        path.name,
        benchmark,
        str(document.get("title") or path.stem),
        str(document.get("command") or ""),
        document.get("complete") is True,
        str(document.get("started") or ""),
        conditions,
        tuple(measured),
        tuple(crypto),
        tuple(provider),
        tuple(engine),
    )


def slug(text: str) -> str:
    """Fit for ids and names of files."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "result"


def _key(stem: str, keys: set[str]) -> str:
    base = slug(stem)
    key = next(
        name for n in range(1, len(keys) + 2) if (name := base if n == 1 else f"{base}-{n}") not in keys
    )
    keys.add(key)
    return key


def _number(row: Fields, name: str, low: float = 0.0) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= low:
        above = "positive number" if low == 0 else f"number above {low:g}"
        raise ReportError(f'has "{name}": {value!r}, which is no {above}')
    return value


def _positive(row: Fields, name: str) -> float:
    value = _number(row, name)
    if value is None:
        raise ReportError(f'lacks "{name}"')
    return value


def _count(row: Fields, name: str) -> int | None:
    value = _number(row, name, low=-1)
    return None if value is None else int(value)


def _word(row: Fields, name: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str) or (not value and default != ""):
        raise ReportError(f'lacks "{name}", which is a word')
    return value


def _time(row: Fields, name: str) -> float | None:
    ms = _number(row, f"{name}_ms")
    return _number(row, f"{name}_us") if ms is None else ms * 1e3


def _measurement(row: Fields, benchmark: str) -> Measurement:
    plain, time, ratio = _time(row, "plain"), _time(row, "time"), _number(row, "ratio")
    if ratio is None:
        if plain is None or time is None:
            raise ReportError('has neither a "ratio" nor the times to make one from')
        ratio = time / plain
    low, high = _number(row, "ratio_low"), _number(row, "ratio_high")
    if (low is None) != (high is None):
        raise ReportError('has only one end of the interval "ratio_low" to "ratio_high"')
    if low is not None and high is not None and not low <= ratio <= high:
        raise ReportError(f"has a ratio of {ratio:g} outside its own interval, {low:g} to {high:g}")
    what = _word(row, "what", benchmark)
    size = _count(row, "bytes")
    if size is None and benchmark in ("pingpong", "pairs", "collective"):
        raise ReportError('lacks "bytes"')
    return Measurement(
        what,
        _word(row, "scheme", "mpisec"),
        ratio,
        size,
        str(row.get("class") or ""),
        _word(row, "algorithm", ""),
        _count(row, "pairs"),
        _count(row, "window"),
        _count(row, "ways"),
        plain,
        time,
        low,
        high,
        _count(row, "rounds"),
        row.get("capped") is True,
        _number(row, "ratio_with_barrier"),
    )


def _crypto(row: Fields) -> CryptoMeasurement:
    return CryptoMeasurement(
        _word(row, "library"),
        str(row.get("version") or ""),
        _word(row, "cipher"),
        int(_positive(row, "bytes")),
        int(_positive(row, "threads")),
        _positive(row, "seal_gb_per_s"),
        _positive(row, "open_gb_per_s"),
        _number(row, "memcpy_gb_per_s"),
        row.get("chosen") is True,
    )


def _provider(row: Fields) -> ProviderMeasurement:
    return ProviderMeasurement(
        _word(row, "mode"),
        int(_positive(row, "bits")),
        int(_positive(row, "bytes")),
        _word(row, "direction"),
        *(_numbers(row, name) for name in ("cycles_per_byte", "over_openssl", "over_software")),
    )


def _engine(row: Fields) -> EngineMeasurement:
    times = row.get("thread_s_per_gb")
    if not isinstance(times, list) or not all(isinstance(one, int | float) and math.isfinite(one) for one in times):
        raise ReportError('lacks "thread_s_per_gb", which is a list of numbers')
    return EngineMeasurement(
        _word(row, "operation"),
        _word(row, "kind"),
        int(_positive(row, "bytes")),
        int(_positive(row, "threads")),
        _positive(row, "gb_per_s"),
        _positive(row, "efficiency"),
        _positive(row, "efficiency_low"),
        _positive(row, "efficiency_high"),
        tuple(float(one) for one in times),
        _number(row, "communicating_s_per_gb", low=-1) or 0.0,
    )


def _numbers(row: Fields, name: str) -> dict[str, float]:
    values = row.get(name)
    if not isinstance(values, dict) or not values:
        raise ReportError(f'lacks "{name}", which is an object')
    return {inner: _positive(values, inner) for inner in values}
