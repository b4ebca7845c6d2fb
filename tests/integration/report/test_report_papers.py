"""The transcription of the papers' tables, checked by what their text says of its own numbers."""

import pytest

from mpisec_bench.paper import bytes_of
from mpisec_bench.report import papers


def _table(paper, name):
    return next(
        table for table in papers.tables() if (table.paper, table.name) == (papers.paper(paper), name)
    )


def _row(table, name):
    return next(row for row in table.rows if row[0] == name)


def _value(table, row, column):
    return _row(table, row)[1][table.columns.index(column)]


@pytest.mark.parametrize(
    ("name", "column", "percent"),
    [
        ("IV", "BoringSSL", 12.75),
        ("IV", "Libsodium", 19.25),
        ("IV", "CryptoPP", 30.33),
        ("VIII", "BoringSSL", 17.93),
        ("VIII", "Libsodium", 24.27),
        ("VIII", "CryptoPP", 29.41),
    ],
)
def test_naser_total_overheads_of_nas(name, column, percent):
    """Their totals, of times with two decimals more than are printed."""
    assert (_table("naser", name).total(column) - 1) * 100 == pytest.approx(percent, abs=0.02)


def test_naser_totals_of_seconds():
    table = _table("naser", "IV")
    sums = dict(
        zip(
            table.columns,
            (sum(values) for values in zip(*(row[1] for row in table.rows), strict=True)),
            strict=True,
        )
    )
    assert sums["unencrypted"] == pytest.approx(88.52)
    assert sums["BoringSSL"] == pytest.approx(99.81, abs=0.02)


@pytest.mark.parametrize(
    ("name", "row", "column", "percent"),
    [
        ("I", "256B", "Libsodium", 5.89),
        ("V", "256B", "BoringSSL", 80.93),
        ("II", "4MB", "BoringSSL", 44.8),
        ("II", "4MB", "Libsodium", 90.96),
        ("III", "16KB", "BoringSSL", 17.19),
        ("III", "16KB", "CryptoPP", 44.19),
    ],
)
def test_naser_overheads(name, row, column, percent):
    table = _table("naser", name)
    assert (table.ratio(_row(table, row), column) - 1) * 100 == pytest.approx(percent, abs=0.03)


@pytest.mark.parametrize(
    ("name", "row", "column", "microseconds"),
    [
        ("II", "4MB", "BoringSSL", 4298),
        ("II", "16KB", "BoringSSL", 14.42),
        ("III", "4MB", "CryptoPP", 1331103),
        ("III", "16KB", "CryptoPP", 2900),
    ],
)
def test_naser_microseconds_of_encryption(name, row, column, microseconds):
    table = _table("naser", name)
    assert _value(table, row, column) - _value(table, row, "unencrypted") == pytest.approx(
        microseconds, rel=1e-4
    )


def test_naser_throughputs_explain_their_ping_pong():
    """A ping-pong takes the network's time and the cipher's: 1 + 1038 / 1381 is nearly the text's 78.3 %."""
    points, _ = papers.crypto_points("aes-256-gcm")
    series = {
        one.label: dict(one.points) for _, _, all_ in papers.series_by_paper("pingpong") for one in all_
    }
    assert 1 + 1038 / dict(points["boringssl"])[bytes_of("2MB")] == pytest.approx(
        series["BoringSSL, Ethernet"][2 << 20], abs=0.04
    )
    assert series["BoringSSL, InfiniBand"][2 << 20] == pytest.approx(3.152)
    assert {
        round(fact["value"] / 3128, 3) for _, fact in papers.facts("pairs") if fact["unit"] == "MB/s"
    } == {1.0, 0.819}


@pytest.mark.parametrize(
    ("name", "row", "column", "against", "ratio", "tolerance"),
    [
        ("I", "4B", "Docker Swarm", "bare metal", 2.17, 0.005),  # containers cost 117 %
        ("I", "256KB", "Docker Swarm", "bare metal", 1.21, 0.005),
        ("I", "1MB", "Docker Swarm", "bare metal", 1.00, 0.01),
        ("I", "1MB", "Docker Swarm, IPsec", None, 12.7, 0.01),  # an overhead of 11.7 times
        ("I", "1MB", "Antrea, IPsec", None, 16.0, 0.04),
        ("III", "4B", "Docker Swarm", "bare metal", 2.25, 0.01),
        ("III", "1MB", "Docker Swarm", "bare metal", 1.63, 0.01),
        ("III", "2KB", "Docker Swarm, IPsec", "bare metal", 48.1, 0.05),  # the worst of all
        ("III", "16KB", "Docker Swarm, IPsec", "bare metal", 4.5, 0.03),  # the least, 3.5 times more
        ("III", "16KB", "Docker Swarm, IPsec", None, 3.5, 0.01),
        ("IV", "bt", "Docker Swarm", "bare metal", 1.051, 0.001),
        ("IV", "lu", "Docker Swarm", "bare metal", 1.013, 0.001),
        ("IV", "ft", "Docker Swarm", "bare metal", 1.917, 0.002),
    ],
)
def test_gavahi_ratios(name, row, column, against, ratio, tolerance):
    table = _table("gavahi", name)
    assert table.ratio(_row(table, row), column, against) == pytest.approx(ratio, abs=tolerance)


def test_gavahi_cryptmpi_at_1_mb():
    """Almost 9 and 11 times faster: the others take so many times *more*. The text's 27.4 % do not follow.

    From Table I, CryptMPI takes 30.0 % more than Docker Swarm unencrypted and 30.3 % more than bare metal; no
    column gives 27.4 % (997 us in place of 977 would). We print the table.
    """
    table = _table("gavahi", "I")
    row = _row(table, "1MB")
    mine = _value(table, "1MB", "CryptMPI")
    assert _value(table, "1MB", "Docker Swarm, IPsec") / mine - 1 == pytest.approx(8.8, abs=0.05)
    assert _value(table, "1MB", "Antrea, IPsec") / mine - 1 == pytest.approx(11.3, abs=0.05)
    assert table.ratio(row, "CryptMPI") == pytest.approx(1.300, abs=0.001)
    assert table.ratio(row, "CryptMPI", "bare metal") == pytest.approx(1.303, abs=0.001)


def test_gavahi_singularity_at_1_mb():
    """More than ten times faster than Calico and Antrea."""
    table = _table("gavahi", "II")
    mine = _value(table, "1MB", "CryptMPI on Calico")
    assert min(_value(table, "1MB", column) / mine for column in ("Calico, WireGuard", "Antrea, IPsec")) > 10


def test_gavahi_tables_i_and_ii_share_a_column():
    one, two = (_table("gavahi", name) for name in ("I", "II"))
    assert [row[1][0] for row in one.rows] == [row[1][0] for row in two.rows]


def test_gavahi_orders():
    """CryptMPI is the fastest of the encrypted everywhere; Docker Swarm beats Antrea in all but LU."""
    for name in ("III", "IV"):
        table = _table("gavahi", name)
        for row in table.rows:
            swarm, antrea, crypt = (row[1][table.columns.index(column)] for column in table.against)
            assert crypt < min(swarm, antrea)
            assert (swarm < antrea) == (row[0] != "lu")


def test_jacquin_ipsec_costs_more_than_tenfold():
    plain, ipsec = (
        fact["value"] for source, fact in papers.facts("external") if source == papers.paper("jacquin")
    )
    assert plain / ipsec > 10


def test_every_series_is_over_its_own_unencrypted_time():
    for what in ("pingpong", "allgather", "bcast", "alltoall", "kernels"):
        for _, names, series in papers.series_by_paper(what):
            assert names
            assert len({one.label for one in series}) == len(series)
            assert all(0.1 < ratio < 100 for one in series for _, ratio in one.points)
