"""The ledgers of nonces that the ranks of a job leave behind (builds with MPISEC_NONCE_LEDGER; src/aead/nonce_ledger.hpp)."""

import itertools
from collections import defaultdict
from pathlib import Path

VARIABLE = "MPISEC_LAB_NONCE_LEDGER"


def repeats(directory):
    """Sentences about nonces that two ranks have used under one key, from all ledgers in `directory`. Each rank has found its own
    repeats by itself."""
    runs = defaultdict(list)
    for path in sorted(Path(directory).glob("nonces-*")):
        for line in path.read_text().splitlines():
            key, counts_from, rest, first, last = line.split()
            runs[key, counts_from, rest].append((int(first), int(last), path.name))
    found = []
    for (key, counts_from, rest), ranges in runs.items():
        ranges.sort()
        for (_, last, one), (first, _, other) in itertools.pairwise(ranges):
            if first <= last:
                found.append(f"{one} and {other}: nonce {first} (counted from byte {counts_from}, the rest is {rest}) under key {key}")
    return found
