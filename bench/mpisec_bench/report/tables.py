"""Tables of the page: ours, and the papers' as printed with the ratios that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpisec_bench import paper
from mpisec_bench.report import measures, papers, wording
from mpisec_bench.report.measures import Group
from mpisec_bench.report.reading import CryptoMeasurement, EngineMeasurement, Measurement, ProviderMeasurement, Result

_MOST_THREADS = 16  # whose times stand in a cell


@dataclass(frozen=True)
class Cell:
    """main is what one reads, small what stands under it; best marks the fastest of a column."""

    main: str
    small: str = ""
    strong: bool = False
    word: bool = False  # reads from the left


@dataclass(frozen=True)
class Table:
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]  # the row's name, then Cells
    theirs: bool = False
    note: str = ""


def of_group(group: Group) -> Table:
    """One row per size or kernel, one column per scheme."""
    rows: list[tuple[str | Cell, ...]] = []
    for place in group.positions():
        cells = [_measured(point) if (point := series.at(place)) else Cell("–") for series in group.series]
        rows.append((measures.place_text(place), *cells))
    capped = any(point.capped for series in group.series for point in series.points)
    return Table(
        f"{group.title}: time / plain time (95 % interval); below, plain → scheme",
        ("Kernel" if group.what == "kernels" else "Size", *(s.label for s in group.series)),
        tuple(rows),
        note=f"{wording.DAGGER} The interval is wider than asked: the time allowed ran out."
        if capped
        else "",
    )


def _measured(point: Measurement) -> Cell:
    times = (
        f"{wording.duration(point.plain_us)} → {wording.duration(point.time_us)}"
        if point.plain_us and point.time_us
        else ""
    )
    rounds = f"{point.rounds} rounds" if point.rounds else ""
    barrier = f"with barriers {wording.ratio(point.with_barrier)}" if point.with_barrier else ""
    return Cell(
        wording.with_interval(point.ratio, point.low, point.high, point.capped),
        ", ".join(filter(None, (times, rounds, barrier))),
    )


def of_papers(group: Group, benchmark: str) -> list[Table]:
    """The papers' Tables beside a group."""
    found = [_printed(table) for table in papers.tables(group.what)]
    if group.what == "allgather":
        source, tables = papers.allgather_tables()
        found += [_allgather(source, table) for table in tables]
    return found + _facts("pairs" if benchmark == "pairs" else benchmark if benchmark == "external" else "")


_UNITS = {"us": "µs", "s": "s", "MB/s": "MB/s"}


def _printed(table: papers.Table) -> Table:
    rows: list[tuple[str | Cell, ...]] = []
    for row in table.rows:
        cells = []
        for column, value in zip(table.columns, row[1], strict=True):
            printed = f"{wording.number(value)} {_UNITS[table.unit]}"
            if column not in table.against:
                cells.append(Cell(printed))
                continue
            bare = (
                f"; {wording.ratio(table.ratio(row, column, 'bare metal'))} × bare metal"
                if "bare metal" in table.columns
                else ""
            )
            cells.append(Cell(wording.ratio(table.ratio(row, column)), printed + bare))
        rows.append((row[0].upper() if table.what == "kernels" else _paper_size(row[0]), *cells))
    caption = (
        f"{table.paper.short}, Table {table.name}: {table.title}; {table.nodes} nodes, {table.ranks} ranks. "
        "Time over the unencrypted one; below, as printed"
    )
    if table.what == "kernels":
        totals = [
            Cell(wording.ratio(table.total(column)) if column in table.against else "")
            for column in table.columns
        ]
        rows.append(("all kernels", *totals))
    head = [
        f"{column} / {table.against[column]}" if column in table.against else column
        for column in table.columns
    ]
    return Table(caption, ("Kernel" if table.what == "kernels" else "Size", *head), tuple(rows), theirs=True)


def _paper_size(text: str) -> str:
    return wording.size(paper.bytes_of(text))


def _allgather(source: papers.Paper, table: paper.Table) -> Table:
    rows = tuple(
        (
            _paper_size(row.size),
            Cell(wording.number(round(row.plain, 2))),
            Cell(wording.ratio(row.naive / row.plain)),
            Cell(wording.ratio(row.best / row.plain), row.scheme.upper()),
        )
        for row in table.rows
    )
    caption = (
        f"{source.short}, Table {table.name}: all-gather on {table.cluster.title()}, {table.nodes} "
        f"nodes, {table.ranks} ranks, "
        f"{table.placement} placement; unencrypted in µs, the others as ratios to it"
    )
    return Table(caption, ("Size", "unencrypted", "naive", "best encrypted"), rows, theirs=True)


def _facts(what: str) -> list[Table]:
    found: dict[papers.Paper, list[tuple[str | Cell, ...]]] = {}
    for source, fact in papers.facts(what) if what else ():
        value = f"{wording.number(fact['value'])} {fact['unit']}".strip()
        found.setdefault(source, []).append((fact["setting"], Cell(fact["quantity"], word=True), Cell(value)))
    return [
        Table(
            f"{source.short}: numbers from the text",
            ("Setting", "Quantity", "Value"),
            tuple(rows),
            theirs=True,
        )
        for source, rows in found.items()
    ]


def of_crypto(result: Result) -> list[Table]:
    """Per cipher and number of threads: libraries by size, GB/s of sealing / of opening."""
    tables = []
    for cipher in dict.fromkeys(row.cipher for row in result.crypto):
        for threads in sorted({row.threads for row in result.crypto if row.cipher == cipher}):
            rows = [row for row in result.crypto if (row.cipher, row.threads) == (cipher, threads)]
            tables.append(_speeds(cipher, threads, rows))
    return tables + _facts("crypto")


def _provided(row: ProviderMeasurement, name: str) -> Cell:
    return Cell(f"{row.over_openssl[name]:.2f}", f"{row.over_software[name]:.3g} × software, {row.cycles[name]:.3g} c/B")


def of_provider(result: Result) -> list[Table]:
    """Per mode and length of key: sizes down, both directions of every contestant across; the paper's speed-ups beside them."""
    found = []
    for mode, bits in dict.fromkeys((row.mode, row.bits) for row in result.provider):
        rows = [row for row in result.provider if (row.mode, row.bits) == (mode, bits)]
        names = [name for name in rows[0].over_openssl if name != "openssl"]
        columns = [(direction, name) for direction in dict.fromkeys(row.direction for row in rows) for name in names]
        lines: list[tuple[str | Cell, ...]] = []
        for size in sorted({row.bytes for row in rows}):
            here = {row.direction: row for row in rows if row.bytes == size}
            cells = [_provided(here[direction], name) for direction, name in columns]
            lines.append((wording.size(size), *cells))
        what = {"cbc16": "16 buffers of CBC", "chacha": "ChaCha20-Poly1305"}.get(mode, mode.upper())
        caption = f"{what} with {bits} bits: times as fast as OpenSSL; below, times as fast as pure software, and cycles per byte"
        head = ("Size", *(f"{name.replace('-', ', threads: ')}, {direction}" for direction, name in columns))
        found.append(Table(caption, head, tuple(lines)))
    return found + _facts("provider")


def of_engine(result: Result) -> list[Table]:
    """Per operation: sizes down, numbers of threads across; the paper's throughput beside them."""
    found = []
    for operation in dict.fromkeys(row.operation for row in result.engine):
        rows = [row for row in result.engine if row.operation == operation]
        threads = sorted({row.threads for row in rows})
        lines: list[tuple[str | Cell, ...]] = []
        for kind, size in dict.fromkeys((row.kind, row.bytes) for row in rows):
            here = {row.threads: row for row in rows if (row.kind, row.bytes) == (kind, size)}
            cells = [_of_threads(here[count]) if count in here else Cell("–") for count in threads]
            lines.append((f"{kind} of {wording.size(size)}", *cells))
        does = "sealed and sent" if operation == "send" else "received and opened"
        caption = f"Gbit/s {does} in order, by number of threads; below, efficiency, and milliseconds per GB of each thread, the communicating one first"
        found.append(Table(caption, ("", *(f"{count} thread{'s' if count > 1 else ''}" for count in threads)), tuple(lines)))
    return found + _facts("engine")


def _of_threads(row: EngineMeasurement) -> Cell:
    times = " + ".join(f"{one * 1e3:.0f}" for one in row.thread_s_per_gb[:_MOST_THREADS]) + (" + …" if len(row.thread_s_per_gb) > _MOST_THREADS else "")
    return Cell(f"{row.gb_per_s * 8:.1f}", f"{row.efficiency:.2f}; {times}")


def _speeds(cipher: str, threads: int, rows: Sequence[CryptoMeasurement]) -> Table:
    libraries = {row.library: row.version for row in rows}
    lines: list[tuple[str | Cell, ...]] = []
    for size in sorted({row.bytes for row in rows}):
        here = {row.library: row for row in rows if row.bytes == size}
        fastest = max(row.seal for row in here.values())
        copy = next((row.memcpy for row in here.values() if row.memcpy), None)
        cells = [
            Cell(f"{row.seal:.3g} / {row.open:.3g}{' *' if row.chosen else ''}", strong=row.seal == fastest)
            if (row := here.get(library))
            else Cell("–")
            for library in libraries
        ]
        lines.append((wording.size(size), *cells, Cell(f"{copy:.3g}" if copy else "–")))
    head = (
        "Size",
        *(
            f"{library} {version.removeprefix('boring-sys ')}".strip()
            for library, version in libraries.items()
        ),
        "memcpy",
    )
    on = f"{threads} thread{'s' if threads > 1 else ''}"
    caption = f"{cipher.upper()}, {on}: GB/s of sealing / of opening; bold: seals fastest"
    if any(row.chosen for row in rows):
        caption += "; *: what MPIsec takes by itself"
    return Table(caption, head, tuple(lines))
