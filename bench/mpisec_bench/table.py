"""A result as text."""

from mpisec_bench.conditions import heading
from mpisec_bench.interval import LEAST, median_interval
from mpisec_bench.result import Document, Row, point


def _size(row: Row) -> str:
    return f"class {row['class']}" if "class" in row else str(row.get("bytes", ""))


def _name(row: Row) -> str:
    parts = [row["what"]]
    parts += [row["algorithm"]] if row.get("algorithm", "auto") != "auto" else []
    parts += [f"{row['pairs']} pair{'s' if row['pairs'] > 1 else ''}"] if "pairs" in row else []
    return " ".join(parts)


def first_beside(row: Row, rows: list[Row]) -> list[float]:
    """How the first scheme of a result compares with this row's at its point: quotients of their times, each in relation to plain MPI
    of its own job, one per round; none for the first itself."""
    first = next(other for other in rows if point(other) == point(row))
    if first is row:
        return []
    return [ours / theirs for ours, theirs in zip(first["samples"]["ratio"], row["samples"]["ratio"], strict=False)]


def _beside(row: Row, rows: list[Row]) -> str:
    quotients = first_beside(row, rows)
    if not quotients:
        return ""
    median, low, high = median_interval(quotients)
    return f"  {rows[0]['scheme']}/{row['scheme']} {median:.3f}" + (f" ({low:.3f} to {high:.3f})" if len(quotients) >= LEAST else "")


def table(document: Document) -> str:
    """Lines: what, size, scheme, microseconds plain and under the scheme, their ratio with its 95 % interval, rounds; of several
    schemes, how the first compares with each other one."""
    rows = document["rows"]
    wide = max([len(_name(row)) for row in rows] + [9])
    lines = [heading(document), f"{'':<{wide}} {'bytes':>9} {'scheme':<12} {'plain us':>12} {'us':>12} {'ratio':>8} {'95 % interval':>16} {'rounds':>6}"]
    for row in rows:
        interval = f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}" if "ratio_low" in row else "too few rounds"
        lines.append(
            f"{_name(row):<{wide}} {_size(row):>9} {row['scheme']:<12} {row['plain_us']:>12.2f} {row['time_us']:>12.2f} {row['ratio']:>8.3f} "
            f"{interval:>16} {row['rounds']:>6}{' capped' if row.get('capped') else ''}"
        )
        if "ratio_with_barrier" in row:
            lines[-1] += f"  with barrier {row['ratio_with_barrier']:.3f}"
        lines[-1] += _beside(row, rows)
    return "\n".join([*lines, "ratio: the median of ratios that were taken in turns, not that of the columns beside it"])
