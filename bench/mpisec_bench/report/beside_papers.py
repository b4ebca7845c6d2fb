"""Figures that show what papers have measured beside our own measurements."""

from collections.abc import Sequence

from mpisec_bench.report import figure_parts as parts
from mpisec_bench.report import palette, papers, wording
from mpisec_bench.report.drawing import Line, Plot
from mpisec_bench.report.figure_parts import Figure
from mpisec_bench.report.measures import Group, Series


def of_group(group: Group) -> list[Figure]:
    figures = []
    for source, names, theirs in papers.series_by_paper(group.what):
        ours = [one for one in group.schemes() if wording.is_encrypted(one.scheme)]
        styles = palette.assign([one.scheme for one in ours] + [one.mechanism for one in theirs])
        styles = _apart(styles, ours, theirs)
        lines = [parts.line(one, style, parts.ratio, interval=True) for one, style in zip(ours, styles, strict=False)]
        lines = [parts.renamed(line, f"here: {line.label}") for line in lines]
        for one, style in zip(theirs, styles[len(ours) :], strict=True):
            xs, ys = [x for x, _ in one.points], [y for _, y in one.points]
            lines.append(Line(one.label, xs, ys, *style, theirs=True))
        figures.append(_paper_figure(group, source, names, lines))
    return figures


def _apart(styles: Sequence[palette.Style], ours: Sequence[Series], theirs: Sequence[papers.PaperSeries]) -> list[palette.Style]:
    """The same way of encrypting has the same colour, ours and theirs; markers stay different."""
    fixed: list[palette.Style] = []
    used: set[palette.Style] = set()
    spare = iter("v>P<X*ph^dsD")
    for i, style in enumerate(styles):
        own = palette.of_scheme(([one.scheme for one in ours] + [one.mechanism for one in theirs])[i])
        colour, marker = (own[0], style[1]) if own else style
        if (colour, marker) in used or i >= len(ours):
            marker = next(spare)
        used.add((colour, marker))
        fixed.append((colour, marker))
    return fixed


def _paper_figure(group: Group, source: papers.Paper, names: Sequence[str], lines: Sequence[Line]) -> Figure:
    tables = f"Table{'s' if len(names) > 1 else ''} {wording.conjunction(names)}"
    caption = (
        f"{'Solid' if group.by_size else 'Filled'}: measured here, over plain MPI without a container "
        "network.",
        f"{'Dashed and hollow' if group.by_size else 'Hollow'}: "
        f"{source.short}, {tables} ({source.setting}), over the same network "
        f"unencrypted{_from_text(source, group)}.",
        papers.SHAPES,
    )
    kind = f"beside-{source.short.split()[0].lower()}"
    title = f"{group.title}: ours and those of {source.short}"
    if group.by_size:
        return Figure(Plot(parts.name(group, kind), title, "time / unencrypted time", lines, baseline=1), caption)
    lines = [parts.named_rows(line) for line in lines]
    return Figure(
        Plot(parts.name(group, kind), title, "", lines, x="time / unencrypted time", kind="dots", baseline=1),
        caption,
    )


def _from_text(source: papers.Paper, group: Group) -> str:
    has_points = group.what == "pingpong" and source.short.startswith("Naser")
    return "; 2 MiB from their text, nothing between 1 KiB and that" if has_points else ""
