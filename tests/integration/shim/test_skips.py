"""S3: counters that never come do not make a receiver's memory grow."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("tags", [[], ["same"]], ids=["tags differ", "one tag"])
@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_cancelled_sends_leave_no_gaps(run, compile_mpi, tmp_path, mpi, tags):
    """S3 M6: of 10,000 sends that were cancelled the sender tells the receiver, whose set of counters stays a few runs, and which does not
    take them for messages that were held back on the way."""
    app = compile_mpi(HERE / "cancelled_sends.c", mpi)
    below = compile_mpi(HERE / "cancels.c", mpi, name="cancels.so", flags=["-std=gnu11", "-shared", "-fPIC", "-Wl,--as-needed"])
    result = run([app, *tags], mpi=mpi, env={"LD_PRELOAD": below, "MPISEC_STATS": f"json:{tmp_path}/stats.%r"})
    assert result.returncode == 0 and result.stdout.count(": 0 failures") == 2, result.stdout + result.stderr[-3000:]
    assert "sealed messages were sent" not in result.stderr, "notices and cancelled sends are not in the message audit"
    stats = [json.loads((tmp_path / f"stats.{rank}").read_text()) for rank in range(2)]
    assert stats[1]["replay_runs"] < 200, stats[1]
