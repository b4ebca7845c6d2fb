"""What a reader should know first, computed from the results: nothing here is a fixed figure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mpisec_bench.report import measures, wording
from mpisec_bench.report.cautions import cautions
from mpisec_bench.report.measures import Comparison, Group, Place
from mpisec_bench.report.reading import Measurement, Result

Compared = Sequence[tuple[Result, Group]]
Sentence = tuple[Result | None, str]  # with the Result to look at
Ratio = tuple[float, float | None, float | None, bool, Place, str]  # value, low, high, capped, place, name
_MOST_FILES = 3  # of a benchmark that are said one by one at the top
_MOST_LOSSES = 10  # said one by one at the top; all are in the tables
TITLES = {
    "pingpong": "Ping-pong",
    "pairs": "Several pairs at once",
    "collective": "Collectives",
    "kernels": "Application kernels",
    "external": "Other programs",
    "startup": "Start of a job",
    "crypto": "Crypto libraries",
    "engine": "Several cores",
    "provider": "The OpenSSL provider",
}


@dataclass(frozen=True)
class Value:
    """A ratio with its interval, and where it was measured."""

    text: str = ""
    place: str = ""


@dataclass(frozen=True)
class Headline:
    """A row of the table at the top: one scheme in one measurement."""

    result: Result
    group: Group
    label: str
    ours: bool
    first: Value  # at the smallest size
    last: Value  # at the largest size, or in all
    worst: Value
    factor: str  # how many times MPIsec's time, at the largest size or in all


@dataclass
class Summary:
    """Lists of sentences; those of `short` and `losses` come with the Result to look at, or None."""

    compared: list[str] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)
    short: list[Sentence] = field(default_factory=list)
    losses: list[Sentence] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    headlines: list[Headline] = field(default_factory=list)


def summarise(results: Sequence[Result], unreadable: Sequence[str] = ()) -> Summary:
    """The Summary of all results, in the order of the page."""
    results = sorted(results, key=lambda result: list(TITLES).index(result.benchmark))
    compared = [
        (result, group)
        for result in results
        if result.of_jobs
        for group in measures.groups(result)
    ]
    return Summary(
        _compared(results),
        _machines(results),
        _short(compared) + _startup(results) + _crypto(results) + _engine(results) + _provider(results),
        _losses(compared),
        cautions(results, unreadable),
        [line for result, group in compared for line in _headlines(result, group)],
    )


def lead(result: Result, group: Group) -> str:
    """What a group of measurements comes to, in a sentence; "" where MPIsec has no part in it."""
    return "" if result.benchmark == "startup" else _range([(result, group)])


def _compared(results: Sequence[Result]) -> list[str]:
    schemes = dict.fromkeys(
        wording.scheme(row.scheme, r.conditions) for r in results if r.of_jobs for row in r.rows
    )
    sentences = []
    if schemes:
        sentences.append(
            f"Plain MPI with the same programs under {'; '.join(schemes)}. A ratio is the time under a "
            "scheme over plain MPI's, taken in "
            "turns in one run: 1 costs nothing, 2 is twice as long. In brackets stands the 95 % "
            "interval of the median ratio."
        )
    benchmarks = dict.fromkeys(TITLES[result.benchmark].lower() for result in results)
    return [*sentences, f"{_files(len(results))}: {wording.conjunction(benchmarks)}."]


def _files(count: int) -> str:
    return f"{count} result file{'' if count == 1 else 's'}"


def _machines(results: Sequence[Result]) -> list[str]:
    """A sentence for each machine, one for what ran on it, one when cores are scarce."""
    machines: dict[str, list[Result]] = {}
    for result in results:
        at = result.conditions
        cores = at.get("cores", "?")
        name = at.get("cpu", "A machine that its file does not name")
        text = f"{name}, {cores} core{'' if cores == 1 else 's'}"
        machines.setdefault(text + (f", kernel {at['kernel']}" if at.get("kernel") else ""), []).append(
            result
        )
    sentences = [
        f"{machine}." if len(machines) == 1 else f"{machine} ({_files(len(found))})."
        for machine, found in machines.items()
    ]
    jobs = [result.conditions for result in results if result.of_jobs]
    if jobs:
        parts = [wording.conjunction(dict.fromkeys(str(at["mpi"]) for at in jobs if at.get("mpi")))]
        parts += [
            _span(name, [at[name] for at in jobs if isinstance(at.get(name), int)])
            for name in ("nodes", "ranks")
        ]
        parts.append(wording.conjunction(dict.fromkeys(wording.link(at) for at in jobs)))
        sentences.append("; ".join(filter(None, parts)) + ".")
    scarce = [
        at
        for at in jobs
        if isinstance(at.get("cores"), int)
        and isinstance(at.get("ranks"), int)
        and at["ranks"] >= at["cores"]
    ]
    if scarce:
        sentences.append(
            f"In {len(scarce)} of {len(jobs)} files of jobs there are as many ranks as cores, or more: "
            "no core is left over for encryption, "
            "whoever does it, and ratios hold contention for cores as well."
        )
    return sentences


def _span(name: str, values: Sequence[int]) -> str:
    low, high = min(values, default=None), max(values, default=None)
    return "" if low is None else f"{low} {name}" if low == high else f"{low} to {high} {name}"


def _value(point: Measurement) -> Value:
    place = measures.place_text(measures.position(point))
    return Value(wording.with_interval(point.ratio, point.low, point.high, point.capped), place)


def _headlines(result: Result, group: Group) -> Iterator[Headline]:
    factors = {(c.other.label, c.place): c for c in measures.compare(group)}
    for series in group.schemes():
        total = series.at("total")
        last = total or series.points[-1]
        worst = max((p for p in series.points if p is not total), key=_ratio, default=last)
        factor = factors.get((series.label, measures.position(last)))
        yield Headline(
            result,
            group,
            series.label,
            wording.is_mpisec(series.scheme),
            _value(series.points[0]) if group.by_size else Value(),
            _value(last) if group.by_size or total else Value(),
            _value(worst),
            _factor(factor) if factor else "",
        )


def _ratio(point: Measurement) -> float:
    return point.ratio


def _factor(comparison: Comparison) -> str:
    return wording.with_interval(comparison.factor, comparison.low, comparison.high)


def _short(compared: Compared) -> list[Sentence]:
    """A sentence for each file, or for each benchmark that has many."""
    sentences: list[Sentence] = []
    for benchmark in TITLES:
        files: dict[str, list[tuple[Result, Group]]] = {}
        for result, group in compared:
            if result.benchmark == benchmark and benchmark != "startup":
                files.setdefault(result.key, []).append((result, group))
        if len(files) <= _MOST_FILES:
            sentences += [(mine[0][0], _range(mine)) for mine in files.values()]
        else:
            said = _range([item for mine in files.values() for item in mine])
            sentences.append((None, f"{TITLES[benchmark]} ({_files(len(files))}): {said}" if said else ""))
    return [(result, said) for result, said in sentences if said]


def _range(compared: Compared) -> str:
    """MPIsec's range of ratios over some groups, and what others take of its time; of totals if there are."""
    where = _namer(compared)
    points = [
        (point.ratio, point.low, point.high, point.capped, measures.position(point), where(result, group))
        for result, group in compared
        if (ours := group.reference())
        for point in ours.points
    ]
    if not points:
        return ""
    said = [f"MPIsec takes {_ends(points)} times plain MPI’s time"]
    rivals: dict[str, list[Ratio]] = {}
    for result, group in compared:
        for c in measures.compare(group):
            ratio = (c.factor, c.low, c.high, False, c.place, where(result, group))
            rivals.setdefault(c.other.label.split(",")[0], []).append(ratio)
    said += [f"{label} takes {_ends(ratios)} times MPIsec’s" for label, ratios in rivals.items()]
    return "; ".join(said) + "."


def _namer(compared: Compared) -> Callable[[Result, Group], str]:
    """How a place is told apart: by its file where there are several, by its group, or not at all."""
    if len({result.key for result, _ in compared}) > 1:
        return lambda result, _group: result.title
    if len({group.title for _, group in compared}) > 1:
        return lambda _result, group: group.title
    return lambda _result, _group: ""


def _ends(ratios: Sequence[Ratio]) -> str:
    """The least and the largest of (ratio, low, high, capped, place, name); only of totals if there are."""
    ratios = [ratio for ratio in ratios if str(ratio[4]).lower() == "total"] or ratios
    ends = dict.fromkeys(_bracketed(*end) for end in (min(ratios, key=_first), max(ratios, key=_first)))
    return " to ".join(ends)


def _first(ratio: Ratio) -> float:
    return ratio[0]


def _bracketed(value: float, low: float | None, high: float | None, capped: bool, place: Place, name: str) -> str:
    inner = "; ".join(filter(None, (wording.interval(low, high), name, measures.place_text(place))))
    return f"{wording.ratio(value)}{wording.DAGGER if capped else ''} ({inner})"


def _startup(results: Sequence[Result]) -> list[Sentence]:
    sentences: list[Sentence] = []
    for result in results:
        for row in result.rows if result.benchmark == "startup" else ():
            if row.plain_us and row.time_us:
                change = row.time_us - row.plain_us
                label = wording.scheme(row.scheme, result.conditions)
                sentences.append(
                    (
                        result,
                        f"{row.what}: {wording.duration(row.plain_us)} plain, "
                        f"{wording.duration(row.time_us)} under {label}, "
                        f"{wording.duration(abs(change))} {'more' if change >= 0 else 'less'}.",
                    )
                )
    return sentences


def _crypto(results: Sequence[Result]) -> list[Sentence]:
    sentences: list[Sentence] = []
    for result in results:
        if not result.crypto:
            continue
        size, threads = max(row.bytes for row in result.crypto), min(row.threads for row in result.crypto)
        rows = [row for row in result.crypto if (row.bytes, row.threads) == (size, threads)]
        best = [
            max((row for row in rows if row.cipher == cipher), key=lambda row: row.seal)
            for cipher in dict.fromkeys(row.cipher for row in rows)
        ]
        said = wording.conjunction(
            f"{row.cipher.upper()} {wording.rate(row.seal * 1e3)} ({row.library})" for row in best
        )
        sentences.append(
            (
                result,
                f"Fastest sealing of {wording.size(size)} on {threads} "
                f"thread{'s' if threads > 1 else ''}: {said}.",
            )
        )
    return sentences


def _engine(results: Sequence[Result]) -> list[Sentence]:
    """The best that several threads reach for packets of 64 KiB, or the largest there are."""
    sentences: list[Sentence] = []
    for result in results:
        sizes = [row.bytes for row in result.engine if row.kind == "packet"]
        size = max((one for one in sizes if one <= 65536), default=min(sizes, default=0))
        for operation in dict.fromkeys(row.operation for row in result.engine if size):
            rows = [row for row in result.engine if (row.operation, row.kind, row.bytes) == (operation, "packet", size)]
            best = max(rows, key=lambda row: row.gb_per_s)
            does = "Sealed and sent" if operation == "send" else "Received and opened"
            sentences.append((result, f"{does} in order, packets of {wording.size(size)}: {best.gb_per_s * 8:.3g} Gbit/s with {best.threads} threads, "
                                      f"an efficiency of {best.efficiency:.2f}."))
    return sentences


def _provider(results: Sequence[Result]) -> list[Sentence]:
    """Against OpenSSL and, with the paper's words, against pure software: one thread, the largest size up to 16 KiB."""
    sentences: list[Sentence] = []
    for result in results:
        size = max((row.bytes for row in result.provider if row.bytes <= 16384), default=0)
        rows = [row for row in result.provider if row.bytes == size and row.mode not in ("cbc16", "chacha")]
        ours = min((name for row in rows for name in row.over_openssl if name.startswith("provider")), default="")
        for direction in dict.fromkeys(row.direction for row in rows if ours):
            best = {row.mode: row for row in sorted(rows, key=lambda row: row.bits) if row.direction == direction and row.bits == rows[0].bits}
            said = wording.conjunction(
                f"{mode.upper()} {row.over_openssl[ours]:.2g} ({row.over_software[ours]:.2g} times pure software)" for mode, row in best.items()
            )
            sentences.append((result, f"AES-{rows[0].bits} through the provider, {wording.size(size)}, to {direction}, times as fast as OpenSSL: {said}."))
    return sentences


def _losses(compared: Compared) -> list[Sentence]:
    """Where MPIsec loses, to plain MPI and to encrypted networks; and where nobody can say."""
    jobs = [(result, group) for result, group in compared if result.benchmark != "startup"]
    comparisons = [(result, c) for result, group in jobs for c in measures.compare(group)]
    sentences = _against_plain(jobs)
    if not comparisons:
        return (
            [*sentences, (None, "No other encrypted network was measured, so nothing is said about any.")]
            if jobs
            else sentences
        )
    verdicts = [c.verdict for _, c in comparisons]
    text = (
        f"Of {len(comparisons)} comparisons with encrypted networks MPIsec wins {verdicts.count('faster')} "
        f"and loses {verdicts.count('slower')}"
    )
    if "undecided" in verdicts:
        text += (
            f"; in {verdicts.count('undecided')} the intervals overlap or are missing, and nothing is claimed"
        )
    return [
        *sentences,
        (None, text + "."),
        *_lost([item for item in comparisons if item[1].verdict == "slower"]),
    ]


def _lost(comparisons: Sequence[tuple[Result, Comparison]]) -> list[Sentence]:
    """A sentence for each measurement and rival, the worst first."""
    found: dict[tuple[str, str, str], list[tuple[Result, Comparison]]] = {}
    for result, c in comparisons:
        found.setdefault((result.key, c.group.title, c.other.label), []).append((result, c))
    sentences: list[Sentence] = []
    for lost in sorted(found.values(), key=lambda items: min(c.factor for _, c in items)):
        result, worst = min(lost, key=lambda item: item[1].factor)
        places = wording.conjunction(measures.place_text(c.place) for _, c in lost)
        most = f", most at {measures.place_text(worst.place)}: it" if len(lost) > 1 else ": it"
        title = "" if result.title.startswith(worst.group.title) else f"{worst.group.title}: "
        sentences.append(
            (
                result,
                f"{title}{worst.other.label} is faster than MPIsec at {places}{most} takes "
                f"{_factor(worst)} of MPIsec’s time.",
            )
        )
    left = len(sentences) - _MOST_LOSSES
    return sentences[:_MOST_LOSSES] + (
        [(None, f"{left} more measurements hold such points; see the tables.")] if left > 0 else []
    )


def _against_plain(jobs: Compared) -> list[Sentence]:
    ours = [
        (result, group, point)
        for result, group in jobs
        if (series := group.reference())
        for point in series.points
        if point.what.lower() != "total"
    ]
    if not ours:
        return []
    dearer = [item for item in ours if item[2].low is not None and item[2].low > 1]
    cheaper = sum(point.high is not None and point.high < 1 for _, _, point in ours)
    result, group, worst = max(dearer or ours, key=lambda item: item[2].ratio)
    sentences: list[Sentence] = [
        (
            result,
            f"Against plain MPI, MPIsec is slower at {len(dearer)} of {len(ours)} points (the whole interval "
            "is above 1), most at "
            f"{group.title}, {_value(worst).place}: {_value(worst).text}.",
        )
    ]
    if cheaper:
        sentences.append(
            (
                None,
                f"At {cheaper} point{'' if cheaper == 1 else 's'} it is faster than plain MPI. That is "
                "no merit of encryption: it runs other "
                "algorithms, shares cores in another way, or has MPICH leave out acknowledgements.",
            )
        )
    return sentences
