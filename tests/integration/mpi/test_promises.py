"""Every promise of the design that is to be kept today has a test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import promises


def test_every_promise_has_a_test():
    """An empty row of `python tests/promises.py` fails."""
    empty = [promise for promise, tests in promises.collect().items() if not tests]
    assert not empty, f"no test names {empty}"


def test_tags_are_found_where_they_are():
    """The reader finds promises in docstrings and comments, and nothing else."""
    assert promises.tags("S3, M4 (see send_buffer.c); not S9, 1S2, AES128, M100 or M1.5") == {"S3", "M4"}
    assert promises.tags("progress.c M5: progress") == {"M5"}
