"""What the figures of all results are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mpisec_bench.report import measures, palette, wording
from mpisec_bench.report.drawing import Line, Plot
from mpisec_bench.report.measures import Group, Series
from mpisec_bench.report.reading import Measurement, slug

Value = Callable[[Measurement], float | None]


@dataclass(frozen=True)
class Figure:
    plot: Plot
    caption: tuple[str, ...]  # sentences


def name(group: Group, kind: str) -> str:
    parts = [
        group.what,
        f"class-{group.kernel_class.lower()}" if group.kernel_class else "",
        f"window-{group.window}" if group.window else "",
        f"pairs-{group.pairs}" if group.pairs else "",
        kind,
    ]
    return slug("-".join(part for part in parts if part))


def line(series: Series, style: palette.Style, value: Value, interval: bool = False) -> Line:
    known = [(point, number) for point in series.points if (number := value(point)) is not None]
    points = [point for point, _ in known]
    return Line(
        series.label,
        [measures.position(point) for point in points],
        [number for _, number in known],
        *style,
        low=[point.low for point in points] if interval else None,
        high=[point.high for point in points] if interval else None,
        hollow=[point.capped for point in points] if interval else None,
    )


def ratio(point: Measurement) -> float:
    return point.ratio


def interval_note(series: Sequence[Series]) -> list[str]:
    points = [point for one in series for point in one.points]
    notes = []
    if any(point.low is not None for point in points):
        notes.append("Bars are 95 % intervals of the median ratio.")
    else:
        notes.append("The file gives no intervals.")
    if any(point.capped for point in points):
        notes.append(
            f"Hollow marks ({wording.DAGGER} in the table): measured as long as was allowed, and the "
            "interval is still wider than asked."
        )
    return notes


def renamed(line: Line, label: str) -> Line:
    return replace(line, label=label)


def named_rows(line: Line) -> Line:
    return replace(line, xs=[measures.place_text(x) for x in line.xs])
