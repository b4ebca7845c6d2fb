"""Figures of several pairs of ranks that communicate at the same time."""

from collections.abc import Sequence

from mpisec_bench.report import measures, palette, wording
from mpisec_bench.report.drawing import Line, Plot
from mpisec_bench.report.figure_parts import Figure
from mpisec_bench.report.measures import Group


def of_groups(groups: Sequence[Group]) -> list[Figure]:
    """Throughput against the number of pairs, a figure for each size."""
    counts = {group.pairs for group in groups if group.pairs}
    if len(counts) < 2:
        return []
    rows = [
        (one, point) for group in groups if group.pairs for one in group.schemes() for point in one.points
    ]
    labels = list(dict.fromkeys((one.scheme, one.label) for one, _ in rows))
    styles = palette.assign([scheme for scheme, _ in labels])
    figures = []
    for size in sorted({point.bytes or 0 for _, point in rows}):
        lines = []
        for (scheme, label), style in zip(labels, styles, strict=True):
            points = sorted(
                (p.pairs or 0, speed)
                for one, p in rows
                if (one.scheme, one.label, p.bytes) == (scheme, label, size) and (speed := measures.throughput(p))
            )
            if points:
                lines.append(Line(label, [pairs for pairs, _ in points], [speed for _, speed in points], *style))
        plain = {
            p.pairs or 0: speed
            for one, p in reversed(rows)
            if p.bytes == size and (speed := measures.plain_throughput(p))
        }
        if plain:
            lines.insert(
                0,
                Line(
                    "plain MPI",
                    sorted(plain),
                    [plain[pairs] for pairs in sorted(plain)],
                    "plain",
                    "",
                    reference=True,
                ),
            )
        if lines:
            figures.append(
                Figure(
                    Plot(
                        f"pairs-{size}-bytes",
                        f"Throughput of {wording.size(size)} messages by number of pairs",
                        "MB/s, all pairs together",
                        lines,
                        x="pairs",
                        x_is_count=True,
                        logarithmic=False,
                    ),
                    ("Medians; each pair has one sender and one receiver.",),
                )
            )
    return figures
