"""Whether a sealed run came to what plain runs come to.

Plain is compared with plain first: where plain runs differ from each other, a sealed run may differ too. One of the plain runs adds in
another order (jobs.OTHER_SUMMATION), so that rounding is not called a difference."""

import fnmatch
import re

from harness.excerpt import excerpt
from harness.excerpt import line as quoted

OUTCOMES = ("same", "refused", "excepted", "failed plain too", "nothing sealed", "differs")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eEdD][-+]?\d+)?(?!\w)")
_REFUSED = re.compile(r"\b(MPIX?_\w+) is refused")


def normalised(text, suite):
    """The lines that count."""
    lines = []
    for line in text.splitlines():
        for pattern, replacement in suite.replace:
            line = re.sub(pattern, replacement, line)
        line = " ".join(line.split())
        kept = not suite.keep or any(re.search(pattern, line) for pattern in suite.keep)
        if line and kept and not any(re.search(pattern, line) for pattern in suite.drop):
            lines.append(line)
    return sorted(lines) if suite.unordered else lines


def refusals(text):
    """The procedures that MPIsec refused, by its own words."""
    return sorted(set(_REFUSED.findall(text)))


def judge(name, plains, sealed, suite):
    """(outcome, detail) of one case. plains: Cases of plain runs, the first of which decides whether plain passes; sealed: a Case, or
    None when it was not run or did not report."""
    excepted = [reason for pattern, reason in suite.exceptions if fnmatch.fnmatch(name, pattern)]
    said = sealed.said if sealed else ""
    if not all(plain.passed for plain in plains):
        if sealed and "ran out of time" in sealed.said and not any("ran out of time" in plain.said for plain in plains):
            return "differs", f"plain fails, sealed hangs; plain: {excerpt(plains[0].said)}"
        return "failed plain too", excerpt(next(plain.said for plain in plains if not plain.passed))
    if sealed and sealed.passed and agrees([plain.text for plain in plains], sealed.text, suite):
        return "same", ""
    if refusals(said):
        return "refused", ", ".join(refusals(said))
    if excepted:
        return "excepted", excepted[0]
    if sealed is None:
        return "differs", "it passes plain and was not reached sealed"
    if not sealed.passed:
        return "differs", f"it passes plain and fails sealed: {excerpt(said)}"
    return "differs", first_difference([plain.text for plain in plains], sealed.text, suite)


def agrees(plains, sealed, suite):
    """Whether the sealed text is one that plain runs give."""
    return first_difference(plains, sealed, suite) == ""


def first_difference(plains, sealed, suite):
    """The first line of `sealed` that no plain run explains, as a sentence, or nothing."""
    wanted = [normalised(plain, suite) for plain in plains]
    got = normalised(sealed, suite)
    if got in wanted:
        return ""
    if all(len(lines) != len(got) for lines in wanted):
        extra = [line for line in got if line not in wanted[0]] or [line for line in wanted[0] if line not in got]
        return f"{len(got)} lines, plain has {len(wanted[0])}; for instance {', '.join(map(quoted, extra[:2]))}"
    same_length = [lines for lines in wanted if len(lines) == len(got)]
    for number, line in enumerate(got):
        if not _explained([lines[number] for lines in same_length], line, suite.tolerance):
            return f"line {number + 1} is {quoted(line)}, plain has {quoted(same_length[0][number])}"
    return ""


def _explained(plains, line, tolerance):
    if line in plains:
        return True
    if len(set(plains)) == 1 or len({_NUMBER.sub("#", text) for text in [*plains, line]}) > 1:
        return False  # plain always says the same, or they differ in more than numbers
    columns = list(zip(*(_NUMBER.findall(text) for text in plains)))
    return all(_near(numbers, number, tolerance) for numbers, number in zip(columns, _NUMBER.findall(line)))


def _near(numbers, number, tolerance):
    if number in numbers:
        return True
    if len(set(numbers)) == 1:
        return False
    if tolerance is None:
        return True
    values, value = [float(text.lower().replace("d", "e")) for text in numbers], float(number.lower().replace("d", "e"))
    slack = tolerance * max(map(abs, values))
    return min(values) - slack <= value <= max(values) + slack
