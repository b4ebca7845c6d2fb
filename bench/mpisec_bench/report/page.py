"""Writes the page: one file, no scripts, nothing fetched from anywhere (its own policy forbids it)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mpisec_bench.report import figures, palette, papers, svg, tables, wording
from mpisec_bench.report.drawing import Plot, draw
from mpisec_bench.report.figure_parts import Figure
from mpisec_bench.report.reading import Result
from mpisec_bench.report.summary import TITLES, Summary, lead
from mpisec_bench.report.tables import Table
from mpisec_bench.report.wording import Conditions


@dataclass(frozen=True)
class ShownFigure:
    key: str
    title: str
    svg: str
    caption: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """Figures and tables of one group of measurements."""

    title: str
    lead: str
    figures: tuple[ShownFigure, ...]
    tables: tuple[Table, ...]
    papers: tuple[Table, ...]
    elsewhere: Result | None = None  # the Result under which the papers' other tables stand already


@dataclass(frozen=True)
class Article:
    """One result file."""

    result: Result
    blocks: tuple[Block, ...]
    conditions: tuple[tuple[str, str], ...]  # (name, value)
    line: str  # conditions in a line
    overlays: str  # what stood under the other schemes


def render(results: Sequence[Result], summary: Summary) -> str:
    """The page's HTML."""
    import jinja2

    here = resources.files(__package__)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    said: dict[str, Result] = {}
    sections = [
        (benchmark, title, articles)
        for benchmark, title in TITLES.items()
        if (articles := [_article(result, said) for result in results if result.benchmark == benchmark])
    ]
    return template.render(
        summary=summary,
        sections=sections,
        style=(here / "page.css").read_text(encoding="utf-8"),
        light=palette.css(palette.LIGHT),
        dark=palette.css(palette.DARK),
        sources=_sources(results),
    )


def write_plots(results: Sequence[Result], directory: Path) -> list[Path]:
    """Every figure as a PNG and an SVG file, light and with its title; returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    colours = palette.LIGHT | {"figure": "#ffffff"}
    paths: list[Path] = []
    for result in results:
        for _, shown in figures.of_result(result):
            for figure in shown:
                drawn = draw(figure.plot, colours, titled=True)
                drawn.set_facecolor(colours["surface"])
                for kind in ("svg", "png"):
                    paths.append(directory / f"{result.key}-{figure.plot.name}.{kind}")
                    paths[-1].write_bytes(svg.written(drawn, kind))
    return paths


def _article(result: Result, said: dict[str, Result]) -> Article:
    """`said`: caption -> Result of the papers' tables that the page has already."""
    blocks = []
    for group, shown in figures.of_result(result) if not result.is_empty else ():
        drawn = tuple(_shown(result, figure) for figure in shown)
        if group is None and result.benchmark == "pairs":
            blocks.append(Block("By number of pairs", "", drawn, (), ()))
        elif group is None:
            of_kind = {"provider": tables.of_provider, "engine": tables.of_engine}.get(result.benchmark, tables.of_crypto)
            found = of_kind(result)
            blocks.append(
                Block(
                    "",
                    "",
                    drawn,
                    tuple(t for t in found if not t.theirs),
                    tuple(t for t in found if t.theirs),
                )
            )
        else:
            found = tables.of_papers(group, result.benchmark)
            theirs = tuple(table for table in found if table.caption not in said)
            before = next(
                (said[table.caption] for table in found if said.get(table.caption, result) is not result),
                None,
            )
            said |= {table.caption: result for table in theirs}
            blocks.append(
                Block(group.title, lead(result, group), drawn, (tables.of_group(group),), theirs, before)
            )
    return Article(result, tuple(blocks), tuple(_flat(result.conditions)), _line(result), _overlays(result))


def _shown(result: Result, figure: Figure) -> ShownFigure:
    key = f"{result.anchor}-{figure.plot.name}"
    return ShownFigure(
        key,
        figure.plot.title,
        svg.inline(figure.plot, key, " ".join((_spoken(figure.plot), *figure.caption))),
        figure.caption,
    )


def _spoken(plot: Plot) -> str:
    """Each series' range in words: what a figure shows to who does not see it."""
    parts = []
    for line in plot.lines:
        low, high = min(line.ys), max(line.ys)
        parts.append(f"{line.label}: {low:.3g}" + (f" to {high:.3g}" if high > low else ""))
    return f"{plot.about or plot.x}. {'; '.join(parts)}."


def _line(result: Result) -> str:
    at = result.conditions
    parts = [
        at.get("mpi"),
        f"{at['nodes']} nodes" if at.get("nodes") else "",
        f"{at['ranks']} ranks" if at.get("ranks") else "",
        wording.link(at) if result.of_jobs else "",
        at.get("aead"),
        at.get("cpu"),
        f"{at['cores']} cores" if at.get("cores") else "",
        f"kernel {at['kernel']}" if at.get("kernel") else "",
    ]
    return "; ".join(str(part) for part in parts if part)


def _overlays(result: Result) -> str:
    overlays = result.conditions.get("overlays")
    about = overlays.items() if isinstance(overlays, dict) and result.of_jobs else ()
    return "; ".join(f"{wording.scheme(name, {})}: {_overlay(what)}" for name, what in about)


def _overlay(about: object) -> str:
    if not isinstance(about, dict):
        return str(about)
    words = [
        about.get("data_plane"),
        f"in {wording.runs_in(about)}" if wording.runs_in(about) else "",
        about.get("cipher"),
        f"MTU {about['mtu']}" if about.get("mtu") else "",
        f"one TCP connection reaches {wording.bits(about[_RAW])}"
        if isinstance(about.get(_RAW), int | float)
        else "",
    ]
    return ", ".join(str(word) for word in words if word)


_RAW = "raw_tcp_bits_per_second"
_WORDS = {
    "raw_tcp_bits_per_second": "one TCP connection reaches",
    "cpu": "processor",
    "mpi": "MPI",
    "aead": "cipher",
    "rate_bits_per_second": "link",
}


def _flat(conditions: Conditions) -> Iterator[tuple[str, str]]:
    """(name, value) of every condition, whatever else a file holds."""
    for name, value in conditions.items():
        if name == "rate_bits_per_second":
            yield "link", wording.link(conditions).removeprefix("link of ").removesuffix(" link")
        elif name == "rate_of":
            continue  # is in the link's words
        elif name == "overlays" and isinstance(value, dict):
            for overlay, about in value.items():
                yield wording.scheme(overlay, {}), _overlay(about)
        elif name == _RAW and isinstance(value, int | float):
            yield _WORDS[name], wording.bits(value)
        elif isinstance(value, dict):
            yield name.replace("_", " "), "; ".join(f"{key}: {item}" for key, item in value.items())
        else:
            text = "–" if value is None else ("yes" if value else "no") if isinstance(value, bool) else str(value)
            yield _WORDS.get(name, name.replace("_", " ")), text


def _sources(results: Sequence[Result]) -> list[papers.Paper]:
    """The papers that stand beside these results."""
    calls = {row.what for r in results for row in r.rows} | {"crypto" for r in results if r.crypto}
    calls |= {"kernels" for r in results if r.benchmark == "kernels"} | {
        "pairs" for r in results if r.benchmark == "pairs"
    }
    calls |= {"external" for r in results if r.benchmark == "external"}
    calls |= {"provider" for r in results if r.provider} | {"engine" for r in results if r.engine}
    found: dict[papers.Paper, bool] = {}
    for call in sorted(calls):
        for table in papers.tables(call):
            found[table.paper] = True
        for source, _ in papers.facts(call):
            found[source] = True
        if call == "allgather":
            found[papers.allgather_tables()[0]] = True
    return sorted(found, key=lambda source: source.short)
