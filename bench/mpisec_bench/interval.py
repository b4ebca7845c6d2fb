"""The median of few values and where the true one lies: order statistics, without assuming how values are spread."""

import math
import statistics
from collections.abc import Sequence

CONFIDENCE = 0.95
LEAST = 6  # the extremes of six values hold the true median in 31 of 32 cases, those of five in 15 of 16


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """(median, low, high): a distribution-free interval of at least this confidence; the extremes of fewer than LEAST values."""
    ordered = sorted(values)
    count = len(ordered)
    outside, below = 0.0, 0
    while 2 * (outside + math.comb(count, below) / 2**count) <= 1 - confidence:
        outside += math.comb(count, below) / 2**count
        below += 1
    skip = max(below - 1, 0)
    return statistics.median(ordered), ordered[skip], ordered[count - 1 - skip]


def settled(values: Sequence[float], within: float) -> bool:
    """Whether the interval of the median reaches no farther than `within` of it (0.03: 3 %) to either side."""
    if len(values) < LEAST:
        return False
    median, low, high = median_interval(values)
    return high <= median * (1 + within) and low >= median * (1 - within)
