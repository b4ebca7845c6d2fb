"""Makes a failing program small: any part of a program is a program (program.h), so steps are left out as long as it still fails,
then what they say is made simpler."""

import re
import time
from collections.abc import Callable, Iterator

Lines = list[str]
Fails = Callable[[Lines], bool]


class Budget:
    """How long, and how many attempts, shrinking may take."""

    def __init__(self, seconds: float = 300, attempts: int = 400) -> None:
        self.end = time.monotonic() + seconds
        self.attempts = attempts

    def spent(self) -> bool:
        return self.attempts <= 0 or time.monotonic() > self.end


def shrink(lines: Lines, fails: Fails, budget: Budget | None = None) -> Lines:
    """The smallest list of lines found for which fails(lines) is still true. The first line stays."""
    budget = budget or Budget()
    tried: dict[tuple[str, ...], bool] = {}

    def still(candidate: Lines) -> bool:
        key = tuple(candidate)
        if key not in tried:
            if budget.spent():
                return False
            budget.attempts -= 1
            tried[key] = fails(candidate)
        return tried[key]

    while True:
        before = list(lines)
        lines = _fewer(lines, still)
        lines = _simpler(lines, still)
        if lines == before or budget.spent():
            return lines


def _fewer(lines: Lines, still: Fails) -> Lines:
    """Delta debugging (Zeller and Hildebrandt 2002, https://doi.org/10.1109/32.988498): ever smaller pieces are left out."""
    head, rest = lines[:1], lines[1:]
    size = max(len(rest) // 2, 1)
    while rest:
        start = 0
        while start < len(rest):
            candidate = rest[:start] + rest[start + size :]
            if still(head + candidate):
                rest = candidate
            else:
                start += size
        if size == 1:
            break
        size = max(size // 2, 1)
    return head + rest


def _simpler_words(line: str) -> Iterator[str]:
    """Lines that say the same with one word less, or with a smaller value."""
    words = line.split()
    for i in range(len(words) - 1, 0, -1):
        key, _, text = words[i].partition("=")
        if key not in ("comm", "type", "id", "thread", "kind") and not (key in ("from", "with") and "thread=" in line):
            yield " ".join(words[:i] + words[i + 1 :])
        values = []
        numbers = text.split(",")
        if len(numbers) > 1:
            values += [numbers[0], ",".join(numbers[: len(numbers) // 2])]
        if key in ("units", "n", "slack") and re.fullmatch(r"\d+", text):
            values += [str(small) for small in (0, 1, 2, 16, 1025, 4097, 16385, 65537) if small < int(text)]
        yield from (" ".join([*words[:i], f"{key}={value}", *words[i + 1 :]]) for value in values if value != text)


def _simpler(lines: Lines, still: Fails) -> Lines:
    for i in range(1, len(lines)):
        while simpler := next((other for other in _simpler_words(lines[i]) if still([*lines[:i], other, *lines[i + 1 :]])), None):
            lines = [*lines[:i], simpler, *lines[i + 1 :]]
    return lines
