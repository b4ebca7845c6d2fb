"""What options of the lab and of the benchmarks take, checked before anything is made or run."""

import argparse
import math
import re
import shlex
from collections.abc import Sequence

from mpisec_lab.errors import LabError


def variables(option: str, items: Sequence[str]) -> dict[str, str]:
    """["A=1", "B=2"] -> {"A": "1", "B": "2"}. Raises LabError for what is no assignment."""
    for item in items:
        if not re.match(r"[A-Za-z_]\w*=", item, re.ASCII):
            raise LabError(f"{option} {item}: give NAME=VALUE")
    return dict(item.split("=", 1) for item in items)


def words(option: str, line: str) -> list[str]:
    """The words of a command line, as a shell takes it apart. Raises LabError when it has none, or an open quotation mark."""
    try:
        found = shlex.split(line)
    except ValueError as error:
        raise LabError(f"{option} {line}: {str(error)[:1].lower()}{str(error)[1:]}") from error
    if not found:
        raise LabError(f"{option} is empty: it takes a command")
    return found


def count(text: str) -> int:
    """The type of options like --nodes: a whole number above 0."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return int(text)


def duration(text: str) -> float:
    """The type of options like --seconds: a time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no time above 0")
    return value
