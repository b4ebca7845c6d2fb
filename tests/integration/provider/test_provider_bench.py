"""mpisec bench provider, and its section of the report: they run and agree; no time is asserted."""

import json
import os
import subprocess

import pytest

from mpisec_lab import places


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """(the document, what was printed) of a small table."""
    directory = tmp_path_factory.mktemp("bench")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MPISEC_PROVIDER", "OPENSSL_"))}
    words = ["--modes", "ctr,gcm,cbc16,chacha", "--bits", "128", "--sizes", "256,1K", "--rounds", "2", "--milliseconds", "0.1"]
    done = subprocess.run([places.find_mpisec(), "bench", "provider", *words, "-o", directory / "provider.json"],
                          env=env | {"MPISEC_CACHE_DIR": str(directory)}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((directory / "provider.json").read_text()), done.stdout, directory / "provider.json"


def test_every_case_has_every_contestant(measured):
    document, printed, _ = measured
    cases = {(row["mode"], row["bytes"], row["direction"]) for row in document["rows"]}
    assert cases == {*((mode, size, direction) for mode in ("ctr", "gcm") for size in (256, 1024) for direction in ("encrypt", "decrypt")),
                     ("cbc16", 256, "encrypt"), ("cbc16", 1024, "encrypt"),
                     *(("chacha", size, direction) for size in (256, 1024) for direction in ("encrypt", "decrypt"))}
    for row in document["rows"]:
        assert set(row["cycles_per_byte"]) == {"software", "openssl", "provider-1"}
        assert all(value > 0 for value in row["cycles_per_byte"].values())
        assert row["over_openssl"]["openssl"] == 1 and row["over_software"]["software"] == 1
        assert f"{row['over_openssl']['provider-1']:.2f}" in printed
    assert "more than 10x" in printed


def test_software_is_software(measured):
    """OPENSSL_ia32cap reached the process: nothing is as slow as AES without its instructions."""
    row = next(row for row in measured[0]["rows"] if (row["mode"], row["bytes"], row["direction"]) == ("ctr", 1024, "encrypt"))
    assert row["over_software"]["openssl"] > 2


def test_the_report_has_it(measured, report_of):
    text = report_of(measured[2])
    assert "The OpenSSL provider" in text and "Intel IPP note" in text and "largest speed-up" in text


def test_an_unknown_mode_is_named():
    done = subprocess.run([places.find_mpisec(), "bench", "provider", "--modes", "ctx"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0 and "there is no mode ctx" in done.stderr
