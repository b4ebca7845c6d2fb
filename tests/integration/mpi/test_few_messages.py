"""One-sided operations in few messages: a put and what ends its epoch are one; one message announces several long ones."""

import json
from pathlib import Path

HERE = Path(__file__).parent
SMALL, LARGE = 100, 63


def test_puts_take_few_messages(run, compile_mpi, tmp_path):
    """S2: nothing is lost by it; and 63 puts of 64 KiB need at most 8 messages more, not 63 and one for the unlock."""
    app = compile_mpi(HERE / "few_messages.c", "mpich-5")
    result = run([app], env={"MPISEC_STATS": f"json:{tmp_path}/stats.%r"})
    assert result.returncode == 0 and "0 wrong" in result.stdout, result.stdout + result.stderr[-3000:]
    sealed = json.loads((tmp_path / "stats.0").read_text())["seal_small"]
    others = 12  # a lock, and MPIsec's own at the beginning and at the end
    assert SMALL + LARGE <= sealed["messages"] <= SMALL + LARGE + 8 + others, sealed
    # 8 bytes, a header and a run, the flush among them: no request of its own.
    assert sealed["bytes"] < SMALL * 96 + LARGE * (65536 + 80) + others * 300, sealed
