"""Draws a Plot with matplotlib, in the colours it is given. Knows nothing of benchmarks.

Figures are narrow and their text is large: on a telephone, 336 CSS pixels wide, letters still have 10 pixels.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mpisec_bench.plot_sim import size_text

WIDTH, TEXT = 430, 12.9  # points, which are CSS pixels when a figure is shown at its own size
_FACTOR_TICKS = (
    [0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2],
    [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2],
    [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10],
    [m * 10**e for e in range(-4, 9) for m in (1, 2, 5)],
    [10**e for e in range(-4, 10)],
    [10**e for e in range(-4, 10, 2)],
)


X = int | str  # a size, a small number, or the name of a row
Colours = Mapping[str, str]


@dataclass(frozen=True)
class Line:
    """Points of one series. low, high: ends of interval bars, None where there is none; hollow: capped."""

    label: str
    xs: Sequence[X]
    ys: Sequence[float]
    colour: str
    marker: str
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    hollow: Sequence[bool] | None = None
    theirs: bool = False  # another paper's: dashed
    reference: bool = False  # plain MPI, memcpy: thin, without markers


@dataclass(frozen=True)
class Plot:
    """kind: "lines" (x: sizes or, with x_is_count, small numbers), "bars", "dots" (xs: names of rows)."""

    name: str
    title: str
    about: str  # what stands above the y axis
    lines: Sequence[Line]
    x: str = "bytes"
    kind: str = "lines"
    baseline: float | None = None  # a line at this y: 1 for ratios
    x_is_count: bool = False
    logarithmic: bool = True
    texts: dict[tuple[str, X], str] = field(default_factory=dict)  # bars: (label, row) -> what is written at the end


def draw(plot: Plot, colours: Colours, titled: bool = False) -> Figure:
    """A matplotlib Figure. titled: the title goes into the picture too, for files that stand alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with matplotlib.rc_context(_settings(colours)):
        height = {"lines": _height_of_lines, "bars": _height_of_bars, "dots": _height_of_dots}[plot.kind](
            plot
        )
        engine = ConstrainedLayoutEngine(w_pad=3 / 72, h_pad=4 / 72)
        figure, axes = pyplot.subplots(figsize=(WIDTH / 72, height / 72), layout=engine)
        {"lines": _lines, "bars": _bars, "dots": _dots}[plot.kind](plot, axes, colours)
        axes.set_title(plot.about, loc="left", fontsize=TEXT, color=colours["muted"], pad=8)
        if titled:
            figure.suptitle(plot.title, fontsize=TEXT, fontweight="bold", wrap=True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        _legend(plot, figure, axes)
    pyplot.close(figure)
    return figure


def _settings(colours: Colours) -> dict[Any, Any]:  # matplotlib lists all names that it accepts
    return {
        "font.size": TEXT,
        "font.family": "DejaVu Sans",
        "text.color": colours["fg"],
        "axes.labelcolor": colours["muted"],
        "axes.edgecolor": colours["muted"],
        "xtick.color": colours["muted"],
        "ytick.color": colours["muted"],
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "grid.color": colours["grid"],
        "axes.linewidth": 0.8,
        "axes.labelsize": TEXT,
        "xtick.labelsize": TEXT,
        "ytick.labelsize": TEXT,
        "legend.fontsize": TEXT,
        "axes.axisbelow": True,
        "text.parse_math": False,
    }


def _rows_of_legend(plot: Plot) -> int:
    return -(-len(plot.lines) // _columns_of_legend(plot))


def _columns_of_legend(plot: Plot) -> int:
    longest = max((len(line.label) for line in plot.lines), default=0)
    return 3 if longest <= 10 else 2 if longest <= 21 else 1


def _height_of_lines(plot: Plot) -> int:
    return 265 + 17 * _rows_of_legend(plot)


def _names(plot: Plot) -> list[X]:
    return list(dict.fromkeys(x for line in plot.lines for x in line.xs))


def _height_of_bars(plot: Plot) -> int:
    return 70 + len(_names(plot)) * (len(plot.lines) * 17 + 14) + 17 * _rows_of_legend(plot)


def _height_of_dots(plot: Plot) -> int:
    return 70 + len(_names(plot)) * (len(plot.lines) * 8 + 10) + 17 * _rows_of_legend(plot)


def _legend(plot: Plot, figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) < 2 and not any(line.theirs for line in plot.lines):
        return
    figure.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=_columns_of_legend(plot),
        frameon=False,
        handlelength=2.2,
        columnspacing=1.2,
        labelspacing=0.25,
        borderaxespad=0,
        handletextpad=0.5,
    )


def _style(line: Line, colours: Colours) -> dict[str, Any]:
    colour = colours[line.colour]
    if line.reference:
        return {"color": colour, "linewidth": 1.8, "linestyle": (0, (2, 1.3)), "marker": ""}
    return {
        "color": colour,
        "marker": line.marker,
        "markersize": 5 if line.theirs else 6,
        "linewidth": 1.2 if line.theirs else 1.9,
        "linestyle": (0, (4, 2)) if line.theirs else "-",
        "markeredgecolor": colour,
        "markeredgewidth": 1.2,
    }


def _lines(plot: Plot, axes: Axes, colours: Colours) -> None:
    if plot.baseline is not None:
        axes.axhline(plot.baseline, color=colours["fg"], linewidth=1)
    for line in plot.lines:
        style = _style(line, colours)
        style["markerfacecolor"] = colours["surface"] if line.theirs else colours[line.colour]
        axes.plot(line.xs, line.ys, label=line.label, zorder=3 if line.theirs else 4, **style)
        _whiskers(line, axes, colours)
        hollow = [
            (x, y) for x, y, is_hollow in zip(line.xs, line.ys, line.hollow or [], strict=False) if is_hollow
        ]
        if hollow:
            axes.plot(
                *zip(*hollow, strict=True),
                linestyle="",
                marker=line.marker,
                markersize=6,
                color=colours[line.colour],
                markerfacecolor=colours["surface"],
                markeredgewidth=1.4,
                zorder=5,
            )
    axes.set_xlabel(plot.x)
    axes.grid(linewidth=0.7)
    xs = sorted({x for line in plot.lines for x in line.xs}, key=float)
    if plot.x_is_count:
        axes.set_xticks(xs if len(xs) <= 8 else xs[:: -(-len(xs) // 8)])
        axes.margins(x=0.06)
    else:
        _size_axis(axes, [int(x) for x in xs])
    _value_axis(axes, plot)


def _ends(line: Line) -> list[tuple[float, float] | None]:
    """Of each interval; None where there is none. Empty for a line without intervals."""
    both = zip(line.low or [], line.high or [], strict=True)
    return [None if low is None or high is None else (low, high) for low, high in both]


def _whiskers(line: Line, axes: Axes, colours: Colours) -> None:
    bars = [(x, ends) for x, ends in zip(line.xs, _ends(line), strict=False) if ends]
    if bars:
        xs = [float(x) for x, _ in bars]
        axes.vlines(xs, [low for _, (low, _) in bars], [high for _, (_, high) in bars], color=colours[line.colour], linewidth=1.3, zorder=4)
        for end in (0, 1):
            axes.plot(
                xs,
                [ends[end] for _, ends in bars],
                linestyle="",
                marker="_",
                markersize=6,
                markeredgewidth=1.3,
                color=colours[line.colour],
                zorder=4,
            )


def _size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    if sizes[0] == 0:
        axes.set_xscale("symlog", base=2, linthresh=1)
    else:
        axes.set_xscale("log", base=2)
    first, last = max(1, sizes[0]), max(1, sizes[-1])
    if first == last:
        axes.set_xlim(first / 2, first * 2)
    start, end = math.floor(math.log2(first)), math.ceil(math.log2(last))
    step = next(step for step in (1, 2, 4, 5, 10) if (end - start) / step <= 6)
    ticks = [2**e for e in range(-(-start // step) * step, end + 1, step)]
    ticks = [0] * (sizes[0] == 0) + ticks
    axes.set_xticks(ticks, [size_text(tick) for tick in ticks])
    axes.minorticks_off()


def factor_ticks(low: float, high: float) -> list[float]:
    """Round numbers between low and high, at most seven and not crowded, for a logarithmic axis."""
    for candidates in _FACTOR_TICKS:
        ticks = [tick for tick in candidates if low <= tick <= high]
        gaps = [math.log(b / a) / math.log(high / low) for a, b in itertools.pairwise(ticks)]
        covered = bool(ticks) and candidates[0] <= low * 1.3 and candidates[-1] >= high / 1.3
        if 2 <= len(ticks) <= 7 and covered and min(gaps) >= 0.08:
            return ticks
    return [float(f"{low:.2g}"), float(f"{high:.2g}")]


def _value_axis(axes: Axes, plot: Plot) -> None:
    values = [
        y
        for line in plot.lines
        for ys in (line.ys, line.low or [], line.high or [])
        for y in ys
        if y is not None
    ]
    if plot.baseline is not None:
        values.append(plot.baseline)
    if not plot.logarithmic:
        axes.set_ylim(0, max(values) * 1.08)
        return
    low, high = min(values), max(values)
    pad = max((high / low) ** 0.06, 1.02)
    low, high = low / pad, high * pad
    if plot.baseline == 1:
        low, high = min(low, 0.94), max(high, 1.1)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    ticks = factor_ticks(low, high)
    axes.set_yticks(ticks, [f"{tick:.10g}" for tick in ticks])
    axes.minorticks_off()


def _bars(plot: Plot, axes: Axes, colours: Colours) -> None:
    names, count = _names(plot), len(plot.lines)
    thickness = 0.84 / count
    longest = max(y for line in plot.lines for y in line.ys)
    for i, line in enumerate(plot.lines):
        offset = (i - (count - 1) / 2) * thickness
        places = [names.index(x) + offset for x in line.xs]
        axes.barh(
            places,
            line.ys,
            height=thickness * 0.86,
            color=colours[line.colour],
            label=line.label,
            alpha=0.55 if line.reference else 1,
        )
        for x, y, place, ends in zip(line.xs, line.ys, places, _ends(line) or [None] * len(places), strict=True):
            end = y
            if ends:
                axes.plot(
                    ends,
                    [place, place],
                    color=colours["fg"],
                    linewidth=1.2,
                    solid_capstyle="butt",
                )
                end = max(y, ends[1])
            axes.annotate(
                plot.texts.get((line.label, x), ""),
                (end, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=TEXT,
                color=colours["fg"],
            )
    if plot.baseline is not None:
        axes.axvline(plot.baseline, color=colours["fg"], linewidth=1)
    axes.set_yticks(range(len(names)), [str(name) for name in names], color=colours["fg"])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, longest * 1.55)  # room for what is written at the ends
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= longest])
    axes.grid(axis="x", linewidth=0.7)
    axes.set_xlabel(plot.x)


def _dots(plot: Plot, axes: Axes, colours: Colours) -> None:
    names, count = _names(plot), len(plot.lines)
    if plot.baseline is not None:
        axes.axvline(plot.baseline, color=colours["fg"], linewidth=1)
    for i, line in enumerate(plot.lines):
        offset = (i - (count - 1) / 2) * 0.8 / count
        places = [names.index(x) + offset for x in line.xs]
        colour = colours[line.colour]
        axes.plot(
            line.ys,
            places,
            linestyle="",
            marker=line.marker,
            markersize=6,
            color=colour,
            markeredgewidth=1.3,
            markerfacecolor=colours["surface"] if line.theirs else colour,
            label=line.label,
            zorder=4,
        )
        for place, ends in zip(places, _ends(line), strict=False):
            if ends:
                axes.plot(ends, [place, place], color=colour, linewidth=1.5)
    for row in range(1, len(names)):
        axes.axhline(row - 0.5, color=colours["grid"], linewidth=0.8)
    values = [
        y
        for line in plot.lines
        for ys in (line.ys, line.low or [], line.high or [])
        for y in ys
        if y is not None
    ] + [1]
    low, high = min(values) / 1.08, max(values) * 1.08
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    ticks = factor_ticks(low, high)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(range(len(names)), [str(name) for name in names], color=colours["fg"])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", linewidth=0.7)
    axes.set_xlabel(plot.x)
