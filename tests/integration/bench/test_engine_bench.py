"""mpisec bench engine, and its section of the report: every case runs and is right; no time is asserted."""

import json
import subprocess

import pytest

from mpisec_lab import places

_SMALL = ("--aead", "openssl:aes-128-gcm", "--packets", "1K,64K", "--messages", "1M", "--threads", "1,2,3", "--rounds", "2", "--milliseconds", "1")


def bench(*words):
    return subprocess.run([places.find_mpisec(), "bench", "engine", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module", params=[(), ("--link", "tcp"), ("--link", "tcp", "--dedicated")], ids=" ".join)
def measured(request, tmp_path_factory):
    """(the document, what was printed, its file, threads that only communicate)."""
    file = tmp_path_factory.mktemp("bench") / "engine.json"
    done = bench(*_SMALL, *request.param, "-o", file)
    assert done.returncode == 0, done.stderr
    return json.loads(file.read_text()), done.stdout, file, int("--dedicated" in request.param)


def test_every_case_is_there(measured):
    document, printed, _, dedicated = measured
    cases = {(row["operation"], row["kind"], row["bytes"], row["threads"]) for row in document["rows"]}
    assert cases == {(operation, kind, size, threads) for operation in ("send", "receive") for threads in (1, 2, 3)
                     for kind, size in (("packet", 1024), ("packet", 65536), ("message", 1 << 20))}
    for row in document["rows"]:
        assert len(row["thread_s_per_gb"]) == row["threads"] + dedicated
        assert row["gb_per_s"] > 0 and row["efficiency_low"] <= row["efficiency"] <= row["efficiency_high"]
        assert row["threads"] > 1 or row["efficiency"] == 1
        assert not dedicated or row["thread_s_per_gb"][0] == 0, "the communicating thread sealed"
    assert "5.75 of 10 Gbit/s" in printed


def test_communicating_takes_time_where_there_is_a_link(measured):
    document = measured[0]
    tcp = "TCP" in document["conditions"]["link"]
    assert all((row["communicating_s_per_gb"] > 0) == tcp for row in document["rows"])


def test_the_report_has_it(measured, report_of):
    text = report_of(measured[2])
    for words in ("Several cores", "packet of 64 KiB", "message of 1 MiB", "Jacquin et al. 2010", "5.75", "Received and opened in order"):
        assert words in text, words


def test_efficiency_is_relative_to_one_thread():
    """Which is measured even where it is not asked for."""
    done = bench(*_SMALL[:2], "--packets", "1K", "--messages", "1M", "--threads", "3,2", "--rounds", "1", "--milliseconds", "1", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["threads"] for row in rows[:3]] == [1, 2, 3]
    for case in (rows[i:i + 3] for i in range(0, len(rows), 3)):
        assert [row["efficiency"] for row in case] == pytest.approx([row["gb_per_s"] / (case[0]["gb_per_s"] * row["threads"]) for row in case])


def test_what_is_not_there_is_named():
    done = bench("--aead", "nolibrary")
    assert done.returncode == 2 and "nolibrary" in done.stderr
    assert bench("--threads", "0").returncode != 0
    assert bench("--packets", "0").returncode != 0
