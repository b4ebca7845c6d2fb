"""Which figures a result gets: Plots, each with a caption."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mpisec_bench.report import measures, palette, papers, wording
from mpisec_bench.report.drawing import Line, Plot, X
from mpisec_bench.report.measures import Group, Series
from mpisec_bench.report.reading import Measurement, Result, slug

Value = Callable[[Measurement], float | None]
_MOST_ALGORITHMS = 8  # on the same axes
_SHAPES = "Other machines, networks and years: compare the shapes, not the heights."


@dataclass(frozen=True)
class Figure:
    plot: Plot
    caption: tuple[str, ...]  # sentences


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
        return [(None, of_crypto(result))]
    if result.benchmark in ("provider", "engine"):
        return [(None, [])]  # their tables say it all
    groups = measures.groups(result)
    found: list[tuple[Group | None, list[Figure]]] = [
        (group, _by_size(result, group) if group.by_size else _kernels(result, group)) for group in groups
    ]
    by_pairs = _by_pairs(groups) if result.benchmark == "pairs" else []
    return [(None, by_pairs), *found] if by_pairs else found


def _name(group: Group, kind: str) -> str:
    parts = [
        group.what,
        f"class-{group.kernel_class.lower()}" if group.kernel_class else "",
        f"window-{group.window}" if group.window else "",
        f"pairs-{group.pairs}" if group.pairs else "",
        kind,
    ]
    return slug("-".join(part for part in parts if part))


def _line(series: Series, style: palette.Style, value: Value, interval: bool = False) -> Line:
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


def _ratio(point: Measurement) -> float:
    return point.ratio


def _interval_note(series: Sequence[Series]) -> list[str]:
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


def _labelled_style(series: Sequence[Series]) -> list[palette.Style]:
    return palette.assign([one.scheme for one in series])


def _by_size(result: Result, group: Group) -> list[Figure]:
    series = group.schemes()
    styles = _labelled_style(series)
    lines = [_line(one, style, _ratio, interval=True) for one, style in zip(series, styles, strict=True)]
    figures = [
        Figure(
            Plot(
                _name(group, "overhead"),
                f"{group.title}: overhead by size",
                "time / plain time",
                lines,
                baseline=1,
            ),
            ("1 is plain MPI, in turns with the scheme in the same run.", *_interval_note(series)),
        )
    ]
    figures += _absolute(group, series, styles)
    if len(group.algorithms()) > 1:
        figures += _algorithms(group)
    return figures + _beside_papers(group)


def _absolute(group: Group, series: Sequence[Series], styles: Sequence[palette.Style]) -> list[Figure]:
    if not any(point.time_us for one in series for point in one.points):
        return []
    in_windows = bool(group.window)
    value = measures.throughput if in_windows else lambda point: point.time_us
    lines = [line for one, style in zip(series, styles, strict=True) if (line := _line(one, style, value)).ys]
    plain = _plain(series, measures.plain_throughput if in_windows else lambda point: point.plain_us)
    value_name = "throughput" if in_windows else "one-way time" if group.what == "pingpong" else "time"
    title = f"{group.title}: {value_name} by size"
    about = "MB/s, all pairs together" if in_windows else "µs"
    return [
        Figure(
            Plot(_name(group, "throughput" if in_windows else "time"), title, about, [*plain, *lines]),
            (
                "Medians. Plain MPI is that of the run of "
                + (series[0].label if plain else "")
                + "; each scheme was compared with its own.",
            ),
        )
    ]


def _plain(series: Sequence[Series], value: Value) -> list[Line]:
    points = {measures.position(point): number for point in series[0].points if (number := value(point)) is not None}
    return [Line("plain MPI", list(points), list(points.values()), "plain", "", reference=True)] if points else []


def _algorithms(group: Group) -> list[Figure]:
    chosen = group.algorithms()[:_MOST_ALGORITHMS]
    styles = palette.assign([f"{one.algorithm} {i}" for i, one in enumerate(chosen)])
    lines = [_line(one, style, _ratio, interval=True) for one, style in zip(chosen, styles, strict=True)]
    lines = [_renamed(line, one.algorithm) for line, one in zip(lines, chosen, strict=True)]
    left = group.algorithms()[_MOST_ALGORITHMS:]
    notes = (
        [f"Not drawn, but in the table: {wording.conjunction(one.algorithm for one in left)}."]
        if left
        else []
    )
    return [
        Figure(
            Plot(
                _name(group, "algorithms"),
                f"{group.title}: MPIsec's algorithms",
                "time / plain time",
                lines,
                baseline=1,
            ),
            (
                "Each against the MPI library's own choice without encryption; auto is what MPIsec selects.",
                *_interval_note(chosen),
                *notes,
            ),
        )
    ]


def _renamed(line: Line, label: str) -> Line:
    return replace(line, label=label)


def _beside_papers(group: Group) -> list[Figure]:
    figures = []
    for source, names, theirs in papers.series_by_paper(group.what):
        ours = [one for one in group.schemes() if wording.is_encrypted(one.scheme)]
        styles = palette.assign([one.scheme for one in ours] + [one.mechanism for one in theirs])
        styles = _apart(styles, ours, theirs)
        lines = [_line(one, style, _ratio, interval=True) for one, style in zip(ours, styles, strict=False)]
        lines = [_renamed(line, f"here: {line.label}") for line in lines]
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
        _SHAPES,
    )
    kind = f"beside-{source.short.split()[0].lower()}"
    title = f"{group.title}: ours and those of {source.short}"
    if group.by_size:
        return Figure(Plot(_name(group, kind), title, "time / unencrypted time", lines, baseline=1), caption)
    lines = [_named_rows(line) for line in lines]
    return Figure(
        Plot(_name(group, kind), title, "", lines, x="time / unencrypted time", kind="dots", baseline=1),
        caption,
    )


def _from_text(source: papers.Paper, group: Group) -> str:
    has_points = group.what == "pingpong" and source.short.startswith("Naser")
    return "; 2 MiB from their text, nothing between 1 KiB and that" if has_points else ""


def _named_rows(line: Line) -> Line:
    return replace(line, xs=[measures.place_text(x) for x in line.xs])


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
        line = _named_rows(_line(one, style, _ratio, interval=True))
        for point in one.points:
            time = f" · {wording.duration(point.time_us)}" if point.time_us else ""
            dagger = wording.DAGGER if point.capped else ""
            texts[line.label, names[measures.position(point)]] = f"{wording.ratio(point.ratio)}{dagger}{time}"
        lines.append(line)
    figure = Figure(
        Plot(
            _name(group, "times"),
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
    return [figure, *(_beside_papers(group) if result.benchmark == "kernels" else [])]


def _by_pairs(groups: Sequence[Group]) -> list[Figure]:
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


def of_crypto(result: Result) -> list[Figure]:
    """Speed by size, a figure per cipher; speed-up by threads."""
    figures = [_speed(result, cipher) for cipher in dict.fromkeys(row.cipher for row in result.crypto)]
    threads = {row.threads for row in result.crypto}
    if len(threads) > 1:
        figures += [
            _speed_up(result, cipher, threads) for cipher in dict.fromkeys(row.cipher for row in result.crypto)
        ]
    return figures


def _speed(result: Result, cipher: str) -> Figure:
    rows = [row for row in result.crypto if row.cipher == cipher]
    fewest = min(row.threads for row in rows)
    rows = sorted((row for row in rows if row.threads == fewest), key=lambda row: row.bytes)
    libraries = list(dict.fromkeys(row.library for row in rows))
    lines = []
    copies = {row.bytes: row.memcpy for row in rows if row.memcpy}
    if copies:
        lines.append(Line("memcpy", list(copies), list(copies.values()), "plain", "", reference=True))
    for library, style in zip(libraries, palette.assign(libraries), strict=True):
        mine = [row for row in rows if row.library == library]
        lines.append(
            Line(library, [row.bytes for row in mine], [measures.speed(row) for row in mine], *style)
        )
    theirs, source = papers.crypto_points(cipher)
    for (library, points), marker in zip(theirs.items(), "v>P<", strict=False):
        colour, _ = palette.of_scheme(library) or ("plain", "")
        xs, ys = [size for size, _ in points], [speed / 1e3 for _, speed in points]
        lines.append(Line(f"{library}, 2019", xs, ys, colour, marker, theirs=True))
    caption = [
        f"Sealing and then opening the same bytes, {fewest} thread{'s' if fewest > 1 else ''}: half the "
        "speed of either alone."
    ]
    if theirs:
        caption.append(f"Dashed: {source.short}, numbers of their text ({source.setting}). {_SHAPES}")
    return Figure(
        Plot(slug(f"speed-{cipher}"), f"{cipher.upper()}: throughput by size and library", "GB/s", lines),
        tuple(caption),
    )


def _speed_up(result: Result, cipher: str, threads: set[int]) -> Figure:
    rows = [row for row in result.crypto if row.cipher == cipher]
    size = max(row.bytes for row in rows)
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.bytes == size:
            found.setdefault(row.library, {})[row.threads] = measures.speed(row)
    lines = [
        Line(
            "proportional",
            sorted(threads),
            [n / min(threads) for n in sorted(threads)],
            "plain",
            "",
            reference=True,
        )
    ]
    for library, style in zip(found, palette.assign(list(found)), strict=True):
        speeds = found[library]
        counts = sorted(speeds)
        lines.append(Line(library, counts, [speeds[n] / speeds[counts[0]] for n in counts], *style))
    return Figure(
        Plot(
            slug(f"threads-{cipher}"),
            f"{cipher.upper()}: speed-up by threads",
            f"× the speed of {min(threads)} thread",
            lines,
            x="threads",
            x_is_count=True,
            logarithmic=False,
        ),
        (
            f"Messages of {wording.size(size)}, all threads together. The dotted line is twice the speed "
            "for twice the threads.",
        ),
    )
