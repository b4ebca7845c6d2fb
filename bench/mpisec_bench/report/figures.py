"""Which figures a result gets: Plots, each with a caption."""

from collections.abc import Sequence
from dataclasses import replace

from mpisec_bench.report import beside_papers, crypto_figures, measures, pair_figures, palette, wording
from mpisec_bench.report import figure_parts as parts
from mpisec_bench.report.drawing import Line, Plot, X
from mpisec_bench.report.figure_parts import Figure
from mpisec_bench.report.measures import Group, Series
from mpisec_bench.report.reading import Result

_MOST_ALGORITHMS = 8  # on the same axes


def of_result(result: Result) -> list[tuple[Group | None, list[Figure]]]:
    """[(Group, [Figure])] of a result in the order of the page; None: of no group, or of several."""
    names: set[str] = set()
    return [(group, [_unique(figure, names) for figure in shown]) for group, shown in _of_result(result)]


def _unique(figure: Figure, names: set[str]) -> Figure:
    """The figure with a name that no other of its result has."""
    name, count = figure.plot.name, 1
    while figure.plot.name in names:
        count += 1
        figure = replace(figure, plot=replace(figure.plot, name=f"{name}-{count}"))
    names.add(figure.plot.name)
    return figure


def _of_result(result: Result) -> list[tuple[Group | None, list[Figure]]]:
    if result.benchmark == "crypto":
        return [(None, crypto_figures.of_result(result))]
    if result.benchmark in ("provider", "engine"):
        return [(None, [])]  # their tables say it all
    groups = measures.groups(result)
    found: list[tuple[Group | None, list[Figure]]] = [
        (group, _by_size(result, group) if group.by_size else _kernels(result, group)) for group in groups
    ]
    by_pairs = pair_figures.of_groups(groups) if result.benchmark == "pairs" else []
    return [(None, by_pairs), *found] if by_pairs else found


def _labelled_style(series: Sequence[Series]) -> list[palette.Style]:
    return palette.assign([one.scheme for one in series])


def _by_size(result: Result, group: Group) -> list[Figure]:
    series = group.schemes()
    styles = _labelled_style(series)
    lines = [parts.line(one, style, parts.ratio, interval=True) for one, style in zip(series, styles, strict=True)]
    figures = [
        Figure(
            Plot(
                parts.name(group, "overhead"),
                f"{group.title}: overhead by size",
                "time / plain time",
                lines,
                baseline=1,
            ),
            ("1 is plain MPI, in turns with the scheme in the same run.", *parts.interval_note(series)),
        )
    ]
    figures += _absolute(group, series, styles)
    if len(group.algorithms()) > 1:
        figures += _algorithms(group)
    return figures + beside_papers.of_group(group)


def _absolute(group: Group, series: Sequence[Series], styles: Sequence[palette.Style]) -> list[Figure]:
    if not any(point.time_us for one in series for point in one.points):
        return []
    in_windows = bool(group.window)
    value = measures.throughput if in_windows else lambda point: point.time_us
    lines = [line for one, style in zip(series, styles, strict=True) if (line := parts.line(one, style, value)).ys]
    plain = _plain(series, measures.plain_throughput if in_windows else lambda point: point.plain_us)
    value_name = "throughput" if in_windows else "one-way time" if group.what == "pingpong" else "time"
    title = f"{group.title}: {value_name} by size"
    about = "MB/s, all pairs together" if in_windows else "µs"
    return [
        Figure(
            Plot(parts.name(group, "throughput" if in_windows else "time"), title, about, [*plain, *lines]),
            (
                "Medians. Plain MPI is that of the run of "
                + (series[0].label if plain else "")
                + "; each scheme was compared with its own.",
            ),
        )
    ]


def _plain(series: Sequence[Series], value: parts.Value) -> list[Line]:
    points = {measures.position(point): number for point in series[0].points if (number := value(point)) is not None}
    return [Line("plain MPI", list(points), list(points.values()), "plain", "", reference=True)] if points else []


def _algorithms(group: Group) -> list[Figure]:
    chosen = group.algorithms()[:_MOST_ALGORITHMS]
    styles = palette.assign([f"{one.algorithm} {i}" for i, one in enumerate(chosen)])
    lines = [parts.line(one, style, parts.ratio, interval=True) for one, style in zip(chosen, styles, strict=True)]
    lines = [parts.renamed(line, one.algorithm) for line, one in zip(lines, chosen, strict=True)]
    left = group.algorithms()[_MOST_ALGORITHMS:]
    notes = (
        [f"Not drawn, but in the table: {wording.conjunction(one.algorithm for one in left)}."]
        if left
        else []
    )
    return [
        Figure(
            Plot(
                parts.name(group, "algorithms"),
                f"{group.title}: MPIsec's algorithms",
                "time / plain time",
                lines,
                baseline=1,
            ),
            (
                "Each against the MPI library's own choice without encryption; auto is what MPIsec selects.",
                *parts.interval_note(chosen),
                *notes,
            ),
        )
    ]


def _kernels(result: Result, group: Group) -> list[Figure]:
    series = group.schemes()
    styles = _labelled_style(series)
    places = group.positions()
    texts: dict[tuple[str, X], str] = {}
    lines: list[Line] = []
    plain = {
        place: point.plain_us
        for one in reversed(series)
        for place in places
        if (point := one.at(place)) and point.plain_us
    }
    names = {place: measures.place_text(place) for place in places}
    lines.append(Line("plain MPI", list(names.values()), [1.0] * len(places), "plain", "", reference=True))
    texts |= {
        ("plain MPI", names[place]): f"1 · {wording.duration(plain[place])}"
        for place in places
        if place in plain
    }
    for one, style in zip(series, styles, strict=True):
        line = parts.named_rows(parts.line(one, style, parts.ratio, interval=True))
        for point in one.points:
            time = f" · {wording.duration(point.time_us)}" if point.time_us else ""
            dagger = wording.DAGGER if point.capped else ""
            texts[line.label, names[measures.position(point)]] = f"{wording.ratio(point.ratio)}{dagger}{time}"
        lines.append(line)
    figure = Figure(
        Plot(
            parts.name(group, "times"),
            f"{group.title}: times beside plain MPI",
            "",
            lines,
            x="time / plain time",
            kind="bars",
            baseline=1,
            texts=texts,
        ),
        (
            "Bars are times over plain MPI's, with the seconds behind; thin lines are 95 % intervals of "
            "the median ratio.",
        ),
    )
    return [figure, *(beside_papers.of_group(group) if result.benchmark == "kernels" else [])]
