"""The method of mpisec bench: intervals, rounds, what a file keeps, what interrupted runs go on with. No MPI."""

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))

from mpisec_bench import conditions, interval, provider, result, rounds, schemes  # noqa: E402
from mpisec_bench.__main__ import _without_files  # noqa: E402
from mpisec_bench.table import first_beside  # noqa: E402
from mpisec_lab.errors import LabError  # noqa: E402


class Silent:
    """A progress bar that counts."""

    def __init__(self, _jobs):
        self.jobs = 0

    def begins(self, _name):
        self.jobs += 1

    def ended(self):
        pass

    def left(self, _jobs):
        pass

    def close(self):
        pass


def test_interval_holds_the_median_as_often_as_it_says():
    """Of 2000 samples from a lopsided distribution at least 95 in 100 intervals hold its median; few less than 6 values do."""
    chance = random.Random(1)
    for count in (6, 9, 20):
        held = 0
        for _ in range(2000):
            _, low, high = interval.median_interval([chance.expovariate(1) for _ in range(count)])
            held += low <= 0.6931 <= high
        assert held / 2000 > 0.94, count


def test_interval_leaves_out_the_extremes_of_many_values():
    assert interval.median_interval([1, 2, 3, 4, 5, 6]) == (3.5, 1, 6)
    assert interval.median_interval(range(1, 10)) == (5, 2, 8)
    assert interval.median_interval([7]) == (7, 7, 7)


def test_when_an_interval_is_settled():
    assert not interval.settled([1.0] * 5, 0.03), "five values say too little, however alike"
    assert interval.settled([1.0] * 6, 0.03)
    assert not interval.settled([1.0] * 5 + [1.04], 0.03)
    assert interval.settled([1.0] * 8 + [1.04], 0.03)


def _steady(scheme, microseconds, noise=None):
    def run(cases):
        rows = []
        for case in cases:
            disturbed = microseconds * (1 + (noise(case) if noise else 0))
            rows.append({"what": "test", "bytes": case, "case": case, "time_us": disturbed})
        return [rows]

    return run


def test_rounds_stop_when_settled_and_go_on_where_not():
    chance = random.Random(2)
    found = result.Result("test", "Test", "mpisec bench test", {})
    contestants = {
        schemes.PLAIN: _steady("plain", 100),
        schemes.MPISEC: _steady("mpisec", 104, lambda case: chance.uniform(-0.2, 0.2) if case == 2 else 0),
    }
    rounds.measure(found, contestants, [1, 2], rounds.Method(most_rounds=12), Silent)
    quiet, noisy = found.document()["rows"]
    assert (quiet["bytes"], quiet["rounds"], quiet["ratio"]) == (1, 6, 1.04)
    assert noisy["rounds"] == 12 and noisy["capped"] and "capped" not in quiet
    assert noisy["ratio_low"] < noisy["ratio"] < noisy["ratio_high"]
    assert found.document()["complete"]


def test_ratios_are_of_the_same_round():
    """A machine that becomes slower with every job leaves the ratio alone but for a step."""
    speed = [1.0]

    def slowing(microseconds):
        def run(_cases):
            speed[0] *= 1.5
            yield [{"what": "test", "bytes": 1, "case": 1, "time_us": microseconds * speed[0]}]

        return run

    found = result.Result("test", "Test", "command", {})
    rounds.measure(found, {schemes.PLAIN: slowing(10), schemes.MPISEC: slowing(20)}, [1], rounds.Method(most_rounds=6), Silent)
    row = found.document()["rows"][0]
    assert row["time_us"] / row["plain_us"] == pytest.approx(2, rel=0.3)
    assert row["ratio_low"] == pytest.approx(2 / 1.5) and row["ratio_high"] == pytest.approx(2 * 1.5), "the order turns around"


def test_schemes_take_turns_after_every_job():
    """However many rows a job has."""
    ran = []

    def suite(scheme, sizes):
        def run(_cases):
            for program in ("cg", "ft"):
                ran.append((scheme, program))
                yield [{"what": program, "bytes": size, "case": "suite", "time_us": 1} for size in range(sizes)]
            yield [{"what": "total", "case": "suite", "time_us": 2}]

        return run

    found = result.Result("test", "Test", "command", {})
    contestants = {schemes.PLAIN: suite("plain", 3), schemes.MPISEC: suite("mpisec", 1)}
    rounds.measure(found, contestants, ["suite"], rounds.Method(most_rounds=2), Silent)
    assert ran[:4] == [("plain", "cg"), ("mpisec", "cg"), ("plain", "ft"), ("mpisec", "ft")]
    assert ran[4:8] == [("mpisec", "cg"), ("plain", "cg"), ("mpisec", "ft"), ("plain", "ft")]
    assert [row["what"] for row in found.document()["rows"]] == ["cg", "ft", "total"]


def test_plain_within_the_jobs_serves_the_others():
    found = result.Result("test", "Test", "command", {})
    inside = [{"what": "test", "bytes": 1, "case": 1, "time_us": 30, "plain_us": 10, "ratio": 3.1}]
    over = [{"what": "test", "bytes": 1, "case": 1, "time_us": 50}]
    wireguard = schemes.parse("wireguard")[0]
    rounds.measure(found, {schemes.MPISEC: lambda _: [inside], wireguard: lambda _: [over]}, [1], rounds.Method(), Silent)
    ratios = {row["scheme"]: row["ratio"] for row in found.document()["rows"]}
    assert ratios == {"mpisec": 3.1, "wireguard": 5.0}


def test_nothing_plain_is_an_error():
    with pytest.raises(LabError, match="nothing plain"):
        rounds.measure(result.Result("t", "T", "c", {}), {schemes.MPISEC: _steady("", 1)}, [1], rounds.Method(), Silent)


def test_an_interrupted_run_keeps_whole_rounds_and_goes_on(tmp_path):
    file = tmp_path / "deep" / "test.json"
    calls = []

    def interrupted(cases):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return _steady("", 2)(cases)

    first = result.Result("test", "Test", "mpisec bench test", {}, file)
    with pytest.raises(KeyboardInterrupt):
        rounds.measure(first, {schemes.PLAIN: _steady("", 1), schemes.MPISEC: interrupted}, [1], rounds.Method(), Silent)
    left = result.read(file)
    assert not left["complete"] and left["rows"][0]["rounds"] == 3
    second = result.Result("test", "Test", "mpisec bench test", {}, file)
    second.resume()
    rounds.measure(second, {schemes.PLAIN: _steady("", 1), schemes.MPISEC: _steady("", 2)}, [1], rounds.Method(), Silent)
    whole = result.read(file)
    assert whole["complete"] and whole["rows"][0]["rounds"] == 6 and whole["started"] == left["started"]
    third = result.Result("test", "Test", "mpisec bench test", {}, file)
    third.resume()
    rounds.measure(third, {schemes.PLAIN: None, schemes.MPISEC: None}, [1], rounds.Method(), Silent)  # nothing left to run


def test_resume_refuses_another_commands_file(tmp_path):
    file = tmp_path / "test.json"
    result.Result("test", "Test", "mpisec bench one", {}, file).write()
    with pytest.raises(LabError, match="mpisec bench one"):
        result.Result("test", "Test", "mpisec bench other", {}, file).resume()
    file.write_text(json.dumps({"format": "else"}))
    with pytest.raises(LabError, match="no result of mpisec bench"):
        result.read(file)


def test_schemes():
    names = [scheme.name for scheme in schemes.parse("mpisec,vxlan+ipsec")]
    assert names == ["mpisec", "vxlan+ipsec"]
    other, = schemes.parse("mpisec@/bin/true")
    assert other.sealed and other.program == "/bin/true" and other.name == "mpisec@/bin/true"
    for unknown in ("ssh", "mpisec@/bin/no such program", "wireguard@/bin/true"):
        with pytest.raises(LabError, match=f"knows no '{unknown}'"):
            schemes.parse(f"mpisec,{unknown}")


def test_segments_of_a_given_length():
    scheme, = schemes.parse("segments:256K")
    assert scheme.sealed and dict(scheme.settings) == {"MPISEC_PIPELINE": "on", "MPISEC_SEGMENT": "256K"}


def test_the_first_scheme_beside_the_others():
    """Round by round: in the first both are fast, in the second slow; sizes are compared with the same size only."""
    found = result.Result("t", "T", "c", {})
    whole = schemes.parse("whole")[0].name
    for ours, theirs in ((1.1, 1.0), (2.2, 2.0), (3.3, 3.0)):
        for size in 4, 8:
            found.add({"what": "x", "bytes": size, "time_us": ours * size, "plain_us": float(size)}, "mpisec")
            found.add({"what": "x", "bytes": size, "time_us": theirs * size, "plain_us": float(size)}, whole)
    rows = found.document()["rows"]
    for row in rows:
        quotients = first_beside(row, rows)
        assert quotients == ([] if row["scheme"] == "mpisec" else pytest.approx([1.1, 1.1, 1.1])), row


def test_where_a_result_goes_is_not_part_of_its_command():
    assert _without_files(["pingpong", "-o", "x.json", "--sizes", "1", "--resume", "--output=y"]) == ["pingpong", "--sizes", "1"]


def test_plain_windows_in_a_sealed_job():
    """They need what MPIsec has MPICH do without; jobs that are compared as they are launched have it not."""
    settings = [replace(schemes.MPISEC, times_plain=inside).environment({}) for inside in (True, False)]
    assert settings == [{"MPIR_CVAR_CH4_OFI_ENABLE_RMA": "1", "MPIR_CVAR_CH4_OFI_ENABLE_AM": "1"}, {}]


@pytest.mark.parametrize("directory", ["lib", "lib64", "lib/x86_64-linux-gnu"])
def test_libraries_are_found_as_the_program_finds_them(monkeypatch, tmp_path, directory):
    """As Debian's and Fedora's packages have them; what is preloaded tells builds apart, and the provider's module is there."""
    libraries, program = tmp_path / directory, tmp_path / "bin/mpisec"
    libraries.mkdir(parents=True)
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'libraries    {libraries}'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("MPISEC_LAB_MPISEC", str(program))
    builds = set()
    for content in ("one", "other"):
        (libraries / "libmpisec-mpich.so").write_text(content)
        builds.add(conditions._build())
    assert len(builds) == 2
    told = tmp_path / "told.sh"
    told.write_text('#!/bin/sh\necho "$1" > told\n')
    told.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    provider.Contestant("one", told, "default", {}).close()
    assert (tmp_path / "told").read_text().strip() == str(libraries)
