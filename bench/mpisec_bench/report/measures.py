"""Rows of a result, in groups that share axes, and comparisons between schemes."""

from dataclasses import dataclass

from mpisec_bench.report import wording
from mpisec_bench.report.reading import CryptoMeasurement, Measurement, Result

Place = int | str  # bytes, or the name of a kernel
_ORDER = ("mpisec", "vxlan", "wireguard", "ipsec", "vxlan+ipsec")


@dataclass(frozen=True)
class Series:
    """Measurements of one scheme (and one algorithm), by size or in the order of the kernels."""

    scheme: str
    algorithm: str
    label: str
    points: tuple[Measurement, ...]

    def at(self, place: Place) -> Measurement | None:
        """The measurement at a size or kernel, None where there is none."""
        return next((point for point in self.points if position(point) == place), None)


@dataclass(frozen=True)
class Group:
    """What is drawn on one pair of axes: one call, with so many pairs and messages in flight."""

    what: str  # "kernels" for all kernels of one class together
    title: str
    pairs: int | None
    window: int | None
    series: tuple[Series, ...]
    kernel_class: str = ""

    @property
    def by_size(self) -> bool:
        return self.what != "kernels"

    def positions(self) -> list[Place]:
        """Sizes in order, or kernels as first seen, the total last."""
        found = list(dict.fromkeys(position(point) for series in self.series for point in series.points))
        if self.by_size:
            return sorted(found, key=int)
        return sorted(found, key=lambda name: str(name).lower() == "total")

    def reference(self) -> Series | None:
        """MPIsec as it is set by default: what the others are compared with."""
        ours = [series for series in self.series if wording.is_mpisec(series.scheme)]
        return min(
            ours,
            key=lambda series: (series.scheme != "mpisec", series.algorithm not in ("", "auto")),
            default=None,
        )

    def algorithms(self) -> tuple[Series, ...]:
        """Series of MPIsec's default setting that differ in their algorithm only."""
        return tuple(series for series in self.series if series.scheme == "mpisec" and series.algorithm)

    def schemes(self) -> tuple[Series, ...]:
        """One series per scheme: of several algorithms the selection's own."""
        many = len(self.algorithms()) > 1
        return tuple(
            s for s in self.series if not (many and s.scheme == "mpisec" and s is not self.reference())
        )


@dataclass(frozen=True)
class Comparison:
    """How many times the time of MPIsec another scheme takes at one place: above 1, MPIsec is faster.

    The interval is the widest that both ratios' intervals allow; None where one has none.
    """

    group: Group
    place: Place
    other: Series
    factor: float
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        """faster, slower, or undecided (the intervals overlap, or there is none)."""
        if self.low is None or self.high is None:
            return "undecided"
        return "faster" if self.low > 1 else "slower" if self.high < 1 else "undecided"


def position(point: Measurement) -> Place:
    """Where a measurement stands on its axis: bytes, or the kernel's name."""
    return point.what if point.bytes is None else point.bytes


def place_text(place: Place) -> str:
    return (
        wording.size(place)
        if isinstance(place, int)
        else "all kernels"
        if place.lower() == "total"
        else wording.call(place)
    )


def _rank(item: tuple[tuple[str, str], list[Measurement]]) -> tuple[int, str, bool]:
    scheme, algorithm = item[0]
    first = scheme.split()[0]
    known = _ORDER.index(first) if first in _ORDER else len(_ORDER)
    return known, scheme, algorithm not in ("", "auto")


def groups(result: Result) -> list[Group]:
    """The Groups of a result, in the order of its rows."""
    found: dict[tuple[str, str, int | None, int | None], dict[tuple[str, str], list[Measurement]]] = {}
    for row in result.rows:
        what = "kernels" if row.bytes is None else row.what
        key = (what, row.kernel_class if what == "kernels" else "", row.pairs, row.window)
        found.setdefault(key, {}).setdefault((row.scheme, row.algorithm), []).append(row)
    return [_group(result, *key, series) for key, series in found.items()]


def _group(result: Result, what: str, kernel_class: str, pairs: int | None, window: int | None, found: dict[tuple[str, str], list[Measurement]]) -> Group:
    algorithms = {algorithm for scheme, algorithm in found if scheme == "mpisec" and algorithm}
    series = []
    for (scheme, algorithm), points in sorted(found.items(), key=_rank):
        label = wording.scheme(scheme, result.conditions)
        if algorithm and scheme == "mpisec" and len(algorithms) > 1:
            label += f", {algorithm}"
        ordered = points if what == "kernels" else sorted(points, key=lambda point: point.bytes or 0)
        series.append(Series(scheme, algorithm, label, tuple(ordered)))
    return Group(
        what, _title(result, what, kernel_class, pairs, window), pairs, window, tuple(series), kernel_class
    )


def _title(result: Result, what: str, kernel_class: str, pairs: int | None, window: int | None) -> str:
    title = wording.call(what)
    if result.benchmark == "pairs" and pairs:
        return f"{pairs} pair{'' if pairs == 1 else 's'}" + (
            f", {window} messages in flight" if window else ""
        )
    if what == "kernels":
        title = {"startup": "Start of a job", "external": "Programs"}.get(result.benchmark, title)
    if kernel_class:
        title += f", class {kernel_class}"
    if window:
        title += f", windows of {window}"
    if pairs:
        title += f", {pairs} pair{'s' if pairs > 1 else ''}"
    return title


def compare(group: Group) -> list[Comparison]:
    """[Comparison] of every encrypted scheme of others with MPIsec, wherever both were measured."""
    ours = group.reference()
    if ours is None:
        return []
    found = []
    for other in group.series:
        if wording.is_mpisec(other.scheme) or not wording.is_encrypted(other.scheme):
            continue
        for theirs in other.points:
            mine = ours.at(position(theirs))
            if mine is None:
                continue
            low = theirs.low / mine.high if theirs.low and mine.high else None
            high = theirs.high / mine.low if theirs.high and mine.low else None
            found.append(Comparison(group, position(theirs), other, theirs.ratio / mine.ratio, low, high))
    return found


def throughput(point: Measurement) -> float | None:
    """MB/s that a row's time means, None where that makes no sense.

    One-way times are of one message; with a window they are of all its messages, of every pair and each way at once.
    Without the window's length nothing follows from pairs' times.
    """
    if not point.time_us or not point.bytes or (point.pairs and not point.window):
        return None
    return point.bytes * (point.window or 1) * (point.pairs or 1) * (point.ways or 1) / point.time_us


def plain_throughput(point: Measurement) -> float | None:
    """As throughput, of plain MPI in the same run."""
    known = throughput(point)
    return known * point.time_us / point.plain_us if known and point.time_us and point.plain_us else None


def speed(row: CryptoMeasurement) -> float:
    """GB/s of sealing and then opening the same bytes, as Naser et al. report it: half of either alone."""
    return 1 / (1 / row.seal + 1 / row.open)
