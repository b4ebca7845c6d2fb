"""What must be known before a ratio is believed."""

from collections.abc import Sequence

from mpisec_bench.report import wording
from mpisec_bench.report.reading import Result

Speeds = tuple[object, object]  # of one TCP connection inside and beside an overlay, as a file has them
_RAW = "raw_tcp_bits_per_second"


def cautions(results: Sequence[Result], unreadable: Sequence[str]) -> list[str]:
    """Sentences on interrupted and unreadable files, data planes in user space, intervals wide or missing."""
    sentences = []
    incomplete = [result for result in results if not result.complete]
    if incomplete:
        names = wording.conjunction(result.file for result in incomplete)
        sentences.append(
            f"Interrupted: {names}. What is there is shown and marked; what is missing may tell another "
            "story."
        )
    if unreadable:
        sentences.append(f"Not shown: {'; '.join(unreadable)}.")
    jobs = [result for result in results if result.of_jobs]
    sentences += _planes(jobs)
    rows = [row for result in jobs for row in result.rows]
    capped, bare = sum(row.capped for row in rows), sum(row.low is None for row in rows)
    if capped:
        sentences.append(
            f"{capped} of {len(rows)} ratios are marked {wording.DAGGER}: the time allowed ran out "
            "before the interval was as narrow as asked."
        )
    if bare:
        sentences.append(
            f"{bare} of {len(rows)} ratios come without an interval; nothing is claimed from them."
        )
    return sentences


def _planes(jobs: Sequence[Result]) -> list[str]:
    """A sentence for each data plane in user space: what it is, and the speed of one TCP connection."""
    planes: dict[tuple[str, str], list[Speeds]] = {}
    for result in jobs:
        for scheme in dict.fromkeys(row.scheme for row in result.rows):
            if wording.in_user_space(scheme, result.conditions):
                about = wording.data_plane(scheme, result.conditions)
                plane = (wording.scheme(scheme, {}), about.get("data_plane") or "")
                speeds = (about.get(_RAW), result.conditions.get(_RAW))
                planes.setdefault(plane, []).append(speeds)
    return [_plane(name, what, speeds) for (name, what), speeds in planes.items()]


def _plane(name: str, what: str, speeds: Sequence[Speeds]) -> str:
    known = [(a, b) for a, b in speeds if isinstance(a, int | float) and isinstance(b, int | float)]
    through = ""
    if known:
        inside, beside = (_span(values) for values in zip(*known, strict=True))
        through = f"one TCP connection: {inside}, beside it {beside}"
    said = "; ".join(filter(None, (what, through)))
    return (
        f"{name} ran with its data plane in user space{f' ({said})' if said else ''}. "
        "One in the kernel is usually faster: do not read these ratios as the kernel’s."
    )


def _span(speeds: Sequence[float]) -> str:
    """0.14 Gbit/s to 0.35 Gbit/s."""
    return " to ".join(dict.fromkeys(wording.bits(speed) for speed in (min(speeds), max(speeds))))
