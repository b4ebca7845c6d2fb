"""What is on the wire (S1): for every point-to-point call, every simple collective and every one-sided operation, with small,
threshold-sized and large messages, no 16 bytes of the plaintext. The same program plain shows them all: so the search finds what is there."""

from pathlib import Path

import pytest
from slices import slices_of, taken

from mpisec_lab.capture import count, find_runs

HERE = Path(__file__).parent
MPI = HERE.parent / "mpi"


@pytest.fixture(scope="module")
def carried(cluster, run, compile_mpi, tmp_path_factory):
    """carried(mpi, plain, ranks): (all slices' names, those that were on the wire). Plain, 16 bytes from four places of each are looked for;
    sealed, any 16 bytes of any."""

    def get(mpi, plain, ranks=2):
        directory = tmp_path_factory.mktemp("wire")
        app = compile_mpi(HERE / "wire.c", mpi, flags=["-std=gnu11", "-O2", "-Wno-stringop-overflow", str(MPI / "harness.c")])
        with cluster(2).capture(directory / "pcap") as capture:
            result = run([app, directory / "plaintext"], nodes=2, ranks=ranks, mpi=mpi, plain=plain, timeout=90,
                         env={"OMPI_MCA_mpi_yield_when_idle": "1"})
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-3000:]
        slices = slices_of(result.stdout)
        streams, plaintext = taken(capture, directory)
        if plain:
            seen = {name for name, offset, length in slices
                    if any(count(streams, plaintext[start : start + 16])
                           for start in range(offset + length // 8, offset + length, length // 4))}
        else:
            places = [place for _, _, place in find_runs(streams, plaintext, 16)]
            seen = {name for name, offset, length in slices if any(offset <= place < offset + length for place in places)}
        return {name for name, _, _ in slices}, seen

    return get


@pytest.mark.parametrize("mpi,ranks", [("mpich-5", 2), ("mpich-5", 4), ("openmpi-5", 2), ("mpich-4", 2), ("openmpi-4", 2)])
def test_no_plaintext_on_the_wire(carried, mpi, ranks):
    """S1 S2: sealed, no call shows 16 consecutive bytes of what it carries."""
    every, seen = carried(mpi, False, ranks)
    assert len(every) > 50 and not seen, f"on the wire in clear: {sorted(seen)}"


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_plain_shows_every_call(carried, mpi):
    """The same program without MPIsec: each call's plaintext is seen."""
    every, seen = carried(mpi, True)
    assert every == seen, f"not found although sent in clear: {sorted(every - seen)}"
