"""What collectives put on the wire (S1): sealed, no 16 bytes of what any of them carries, nor of a part of a reduction's result, in
any form, on communicators of every kind, with every algorithm. The same program plain shows them all."""

import sys
from pathlib import Path

import numpy as np
import pytest
from slices import slices_of, taken

from mpisec_lab.capture import find_runs

HERE = Path(__file__).parent
MPI = HERE.parent / "mpi"
sys.path.insert(0, str(MPI))

from mpi_programs import YIELD, algorithms, build_collectives  # noqa: E402
from slow import slow  # noqa: E402


@pytest.fixture(scope="module")
def carried(cluster, run, compile_mpi, tmp_path_factory):
    """carried(mpi, plain, few, nodes, ranks, **settings): (all slices' names, those of which something was on the wire)."""

    def get(mpi, plain, few=False, nodes=2, ranks=4, **settings):
        directory = tmp_path_factory.mktemp("wire")
        app = build_collectives(compile_mpi, mpi, HERE / "wire_collectives.c")
        with cluster(nodes).capture(directory / "pcap") as capture:
            result = run([app, directory / "plaintext", *(["few"] if few else [])], nodes=nodes, ranks=ranks, mpi=mpi, plain=plain,
                         timeout=120, env=YIELD | settings)
        assert "wire: " in result.stdout, result.stdout[-2000:] + result.stderr[-3000:]
        slices = slices_of(result.stdout)
        streams, plaintext = taken(capture, directory)
        places = words_seen(streams, plaintext)
        if not plain and len(places):
            places = [place for _, _, place in find_runs(streams, plaintext, 16)]
        hit = np.unique(np.searchsorted([offset for _, offset, _ in slices], places, side="right") - 1)
        return {name for name, _, _ in slices}, {slices[i][0] for i in hit}

    return get


def words_seen(streams, plaintext):
    """Places in the plaintext of which 8 bytes are an aligned word of a stream (any run of 15 bytes has one): what find_runs looks at
    first, but quick also when that is nearly everywhere."""
    plain = np.frombuffer(plaintext, np.uint8)
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(plain, 8)).view("<u8").ravel()
    perhaps = np.zeros(1 << 26, bool)
    perhaps[slots(windows)] = True
    found = []
    for stream in streams:
        words = np.frombuffer(stream.data, "<u8", count=len(stream.data) // 8)
        found.append(words[perhaps[slots(words)]])
    found = np.append(np.unique(np.concatenate(found)), np.uint64(0))
    return np.flatnonzero(found[np.searchsorted(found[:-1], windows)] == windows)


def slots(words):
    """A hash of 26 bits."""
    return (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(38)


@pytest.mark.parametrize("mpi,few", [("openmpi-5", True), *slow(("mpich-5", False))])
def test_plain_shows_every_collective(carried, mpi, few):
    """The same program without MPIsec: each call's plaintext is seen."""
    every, seen = carried(mpi, True, few)
    assert len(every) > (60 if few else 400) and every == seen, f"not found although sent in clear: {sorted(every - seen)}"


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "mpich-4", "openmpi-4"])
def test_no_plaintext_of_collectives_on_the_wire(carried, mpi):
    """S1 S2: sealed, blocking, non-blocking and persistent: no 16 consecutive bytes."""
    every, seen = carried(mpi, False)
    assert len(every) > 200 and not seen, f"on the wire in clear: {sorted(seen)}"


def test_no_plaintext_with_any_algorithm(carried):
    """S1: every algorithm of every collective, some of them in each job."""
    known = algorithms()
    for turn in range(max(map(len, known.values()))):
        forced = {f"MPISEC_{name.upper()}": names[turn % len(names)] for name, names in known.items()}
        every, seen = carried("mpich-5", False, True, 3, 5, **forced)
        assert len(every) > 60 and not seen, f"on the wire in clear with {forced}: {sorted(seen)}"
