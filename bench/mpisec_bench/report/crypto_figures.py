"""Figures of the crypto libraries' speeds."""

from mpisec_bench.report import measures, palette, papers, wording
from mpisec_bench.report.drawing import Line, Plot
from mpisec_bench.report.figure_parts import Figure
from mpisec_bench.report.reading import Result, slug


def of_result(result: Result) -> list[Figure]:
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
        caption.append(f"Dashed: {source.short}, numbers of their text ({source.setting}). {papers.SHAPES}")
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
