"""What MPISEC_TRACE wrote, of all ranks: where the time went as a table, a large message as a picture, and one file for Perfetto."""

import argparse
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mpisec_lab.errors import LabError

_COLOURS = {"seal segment": "#c2571a", "open segment": "#2a6fb0", "hand over": "#7f7f7f", "MPI progress": "#b8b8b8",
            "MPI wait": "#d9d9d9", "sending": "#e8c9a8", "receiving": "#b9d3ea"}
_CALL, _OTHER = "#efefef", "#cdb7dd"
_WIDTH, _LEFT, _ROW, _GAP = 1000, 110, 20, 4


@dataclass(frozen=True)
class Span:
    """Microseconds; `begin` on a clock that all ranks share."""

    rank: int
    track: int
    name: str
    begin: float
    end: float
    facts: dict[str, int]
    nests: bool  # with its thread's others; else it is under way beside them


@dataclass(frozen=True)
class Trace:
    """Of a job."""

    titles: dict[int, str]  # by rank
    spans: list[Span]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench timeline`."""
    parser.add_argument("directory", type=Path, help="what MPISEC_TRACE named, after the job; of several nodes, all ranks' files in one place")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw a large message: of those of the most frequent size, the one whose time is the median")
    parser.add_argument("--bytes", type=int, help="with --svg: a message of so many bytes")
    parser.add_argument("--merge", type=Path, metavar="FILE.json", help="all ranks in one file, for https://ui.perfetto.dev")


def read(directory: Path) -> Trace:
    """The trace of all ranks whose files are there. Raises LabError."""
    files = sorted(directory.glob("rank-*.json"))
    if not files:
        raise LabError(f"there is no rank-*.json in {directory}: it is what a job with MPISEC_TRACE={directory} leaves at MPI_Finalize")
    titles, spans, first = {}, [], None
    for file in files:
        try:
            document = json.loads(file.read_text(encoding="ascii"))
            about = document["otherData"]
            titles[about["rank"]] = f"rank {about['rank']} ({about['node']})"
            first = about["clock_offset_ns"] if first is None else first  # whole, it would take a float's digits
            spans += _spans(document["traceEvents"], about["rank"], (about["clock_offset_ns"] - first) / 1e3)
        except (ValueError, KeyError, TypeError) as error:
            raise LabError(f"{file} is no trace of MPIsec's: {error!r}") from error
    origin = min((span.begin for span in spans), default=0.0)
    moved = [Span(s.rank, s.track, s.name, s.begin - origin, s.end - origin, s.facts, s.nests) for s in spans]
    return Trace(titles, sorted(moved, key=lambda span: (span.begin, -span.end)))


def _spans(events: Iterable[dict[str, Any]], rank: int, offset: float) -> list[Span]:
    spans, open_ = [], {}
    for event in events:
        kind, begin = event["ph"], event.get("ts", 0.0) + offset
        if kind == "X":
            spans.append(Span(rank, event["tid"], event["name"], begin, begin + event["dur"], event["args"], True))
        elif kind == "b":
            open_[event["id"]] = event
        elif kind == "e":
            started = open_.pop(event["id"])
            spans.append(Span(rank, event["tid"], event["name"], started["ts"] + offset, begin, started["args"], False))
    return spans


def summary(trace: Trace) -> str:
    """A table: by rank and name, how often, how long and how many bytes. Spans contain each other, so nothing adds up to the whole."""
    rows: dict[tuple[int, str], list[Span]] = defaultdict(list)
    for span in trace.spans:
        rows[span.rank, span.name].append(span)
    lines = [f"{'':24} {'spans':>8} {'total us':>12} {'median us':>10} {'bytes':>14}"]
    for rank, title in sorted(trace.titles.items()):
        lines.append(title)
        for (of, name), spans in sorted(rows.items(), key=lambda item: -sum(span.end - span.begin for span in item[1])):
            if of != rank:
                continue
            times = [span.end - span.begin for span in spans]
            moved = sum(span.facts.get("bytes", 0) for span in spans)
            lines.append(f"  {name:22} {len(spans):8} {sum(times):12.1f} {statistics.median(times):10.2f} {moved or '':>14}")
    return "\n".join(lines)


def large_messages(trace: Trace) -> dict[tuple[int, int, int], list[Span]]:
    """Sealing and opening of the segments of each large message, by (sender, receiver, its counter)."""
    messages = defaultdict(list)
    for span in trace.spans:
        if span.name in ("seal segment", "open segment"):
            pair = (span.rank, span.facts["peer"]) if span.name == "seal segment" else (span.facts["peer"], span.rank)
            messages[*pair, span.facts["message"]].append(span)
    return messages


def pick(trace: Trace, size: int | None) -> list[Span]:
    """The segments of the message that is drawn. Raises LabError when there is none."""
    whole: dict[int, list[list[Span]]] = defaultdict(list)
    for spans in large_messages(trace).values():
        opened = sum(span.facts["bytes"] for span in spans if span.name == "open segment")
        if opened > 0 and opened == sum(span.facts["bytes"] for span in spans if span.name == "seal segment"):
            whole[opened].append(spans)
    if size is None and whole:
        size = Counter({bytes_: len(found) for bytes_, found in whole.items()}).most_common(1)[0][0]
    if size is None or size not in whole:
        raise LabError("the trace has no large message that was received whole" + (f" of {size} bytes" if size else ""))
    by_time = sorted(whole[size], key=lambda spans: max(s.end for s in spans) - min(s.begin for s in spans))
    return by_time[len(by_time) // 2]


def _rows(spans: Sequence[Span]) -> list[list[Span]]:
    """Nesting spans by depth; then the others, each in the first row that is free."""
    rows: list[list[Span]] = []
    outer: list[Span] = []
    for span in (span for span in spans if span.nests):
        while outer and outer[-1].end <= span.begin:
            outer.pop()
        if len(rows) <= len(outer):
            rows.append([])
        rows[len(outer)].append(span)
        outer.append(span)
    first = len(rows)
    for span in (span for span in spans if not span.nests):
        free = next((row for row in rows[first:] if row[-1].end <= span.begin), None)
        if free is None:
            rows.append([span])
        else:
            free.append(span)
    return rows


def _box(span: Span, x: float, width: float, y: float) -> str:
    fill = _COLOURS.get(span.name, _CALL if span.name.startswith("MPI_") else _OTHER)
    facts = ", ".join(f"{name} {value}" for name, value in span.facts.items())
    words = span.name + (f" {span.facts['segment']}" if "segment" in span.facts else "")
    label = ""
    if width > 6.2 * len(words):
        label = f'<text x="{x + 3:.1f}" y="{y + 14}">{escape(words)}</text>'
    return (f'<g><title>{escape(span.name)}: {span.end - span.begin:.1f} us{escape(", " + facts if facts else "")}</title>'
            f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0.5):.1f}" height="{_ROW - 2}" fill="{fill}" stroke="#fff" stroke-width="0.5"/>{label}</g>')


def svg(trace: Trace, message: Sequence[Span]) -> str:
    """The ranks of the message while it was under way, as a picture."""
    begin, end = min(span.begin for span in message), max(span.end for span in message)
    scale = (_WIDTH - _LEFT - 10) / (end - begin)
    ranks = sorted({span.rank for span in message}, key=lambda rank: all(s.name != "seal segment" for s in message if s.rank == rank))
    out, y = [], 24
    for rank in ranks:
        seen = [span for span in trace.spans if span.rank == rank and span.end > begin and span.begin < end]
        out.append(f'<text x="4" y="{y + 14}" font-weight="bold">{escape(trace.titles[rank])}</text>')
        for track in sorted({span.track for span in seen}):
            for row in _rows([span for span in seen if span.track == track]):
                for span in row:
                    left = max(span.begin, begin)
                    out.append(_box(span, _LEFT + (left - begin) * scale, (min(span.end, end) - left) * scale, y))
                y += _ROW
            y += _GAP
        y += 2 * _GAP
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if (end - begin) / s <= 12)
    for mark in range(0, int(end - begin) + 1, step):
        x = _LEFT + mark * scale
        out.append(f'<line x1="{x:.1f}" y1="18" x2="{x:.1f}" y2="{y}" stroke="#ddd"/><text x="{x + 2:.1f}" y="14">{mark} us</text>')
    total = sum(span.facts["bytes"] for span in message if span.name == "open segment")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" font-family="sans-serif" font-size="11" role="img">'
            f"<title>A message of {total} bytes: sender above, receiver below</title>"
            f'<rect width="{_WIDTH}" height="{y}" fill="#fff"/>{"".join(out)}</svg>\n')


def merge(directory: Path) -> dict[str, Any]:
    """One document of all ranks, on one clock."""
    documents = [json.loads(file.read_text(encoding="ascii")) for file in sorted(directory.glob("rank-*.json"))]
    first = min((document["otherData"]["clock_offset_ns"] for document in documents), default=0)
    events = []
    for document in documents:
        later = (document["otherData"]["clock_offset_ns"] - first) / 1e3
        events += [event | ({"ts": event["ts"] + later} if "ts" in event else {}) for event in document["traceEvents"]]
    return {"displayTimeUnit": "ns", "traceEvents": events}


def show(arguments: argparse.Namespace) -> bool:
    """Prints the table and writes the files that are asked for."""
    trace = read(arguments.directory)
    print(summary(trace))
    if arguments.svg:
        arguments.svg.write_text(svg(trace, pick(trace, arguments.bytes)), encoding="utf-8")
    if arguments.merge:
        arguments.merge.write_text(json.dumps(merge(arguments.directory)), encoding="ascii")
    return True
