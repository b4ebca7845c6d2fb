"""Nonces as they go out (S4, S6): adversary.c writes down the nonce of every frame of random traffic."""

import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "integration" / "mpi"))
from mpi_programs import build_traffic  # noqa: E402
from nonce_ledger import repeats  # noqa: E402


@pytest.fixture(scope="module")
def frames(run, compile_mpi, tmp_path_factory):
    """frames(env, options): [(source, destination, nonce)] of all frames; one rank per node, so that every message is sealed."""

    def get(env, *options):
        mpi, prefix = "mpich-5", tmp_path_factory.mktemp("nonces") / "log"
        library = compile_mpi(HERE / "adversary.c", mpi, flags=["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"],
                              name="adversary.so")
        env = {"LD_PRELOAD": library, "MPISEC_LAB_NONCES": prefix} | env
        result = run([build_traffic(compile_mpi, mpi), *options], nodes=4, ranks=4, mpi=mpi, env=env, timeout=90)
        assert result.returncode == 0, result.stderr[-3000:]
        found = []
        for rank in range(4):
            for line in Path(f"{prefix}.{rank}").read_text().splitlines():
                destination, _, nonce = line.split()
                found.append((rank, int(destination), bytes.fromhex(nonce)))
        return found

    return get


def test_no_nonce_twice(frames):
    """S4: no pair of ranks sees a nonce twice: across threads, communicators and cancelled receives. (Sealed blocks carry none.)"""
    found = frames({}, "--operations", "1500", "--threads", "3", "--seed", "4")
    assert len(found) > 1200
    twice = [frame for frame, count in Counter(found).items() if count > 1]
    assert not twice, twice[:5]


def test_keys_are_renewed_and_still_no_nonce_twice(frames):
    """S4 S6: with MPISEC_REKEY_MESSAGES=40 the epoch grows after every 40 messages of a pair, and no (epoch, counter) comes twice."""
    found = frames({"MPISEC_REKEY_MESSAGES": "40"}, "--operations", "1500", "--seed", "5")
    assert not [frame for frame, count in Counter(found).items() if count > 1]
    small = [(source, destination, int.from_bytes(nonce[:3], "little") & 0xFFFFF)
             for source, destination, nonce in found if nonce[8:10] == bytes(2)]  # counters below 2^32
    per_epoch = Counter(small)
    assert max(per_epoch.values()) <= 40, per_epoch.most_common(3)
    assert max(epoch for _, _, epoch in small) >= 2


KEY, OTHER_KEY = "00" * 16, "11" * 16


@pytest.mark.parametrize("one,other,repeated", [
    (f"{KEY} 4 01000000 0 9", f"{KEY} 4 01000000 10 19", False),
    (f"{KEY} 4 01000000 0 9", f"{OTHER_KEY} 4 01000000 0 9", False),
    (f"{KEY} 0 00000002 0 9", f"{KEY} 0 00000003 0 9", False),
    (f"{KEY} 0 01000000 0 9", f"{KEY} 4 01000000 0 9", False),
    (f"{KEY} 4 01000000 0 9", f"{KEY} 4 01000000 9 9", True),
    (f"{KEY} 0 00000002 5 5", f"{KEY} 0 00000002 0 9", True),
])
def test_ledgers_of_two_ranks_are_compared(tmp_path, one, other, repeated):
    """S4: of two ranks that seal under one key (a communicator's), what both have used is found; see nonce_ledger.hpp for the lines."""
    (tmp_path / "nonces-a").write_text(f"{one}\n{OTHER_KEY} 0 ffffffff 0 3\n")
    (tmp_path / "nonces-b").write_text(f"{other}\n")
    assert len(repeats(tmp_path)) == (1 if repeated else 0)
