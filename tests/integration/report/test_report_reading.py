"""Reading result files: what is taken, and the sentence that each bad one gets."""

import json

import pytest
import report_samples

from mpisec_bench import result
from mpisec_bench.report.reading import ReportError, find_files, read, read_all


def _file(directory, content, name="result.json"):
    path = directory / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_reads_what_a_row_says(tmp_path):
    found = read(_file(tmp_path, report_samples.pingpong()))
    assert (found.benchmark, found.complete, len(found.rows)) == ("pingpong", True, 30)
    first, last = found.rows[0], found.rows[5]
    assert (first.scheme, first.bytes, first.ratio, first.low, first.high) == (
        "mpisec",
        4,
        1.05,
        1.029,
        1.071,
    )
    assert not first.capped
    assert last.capped


@pytest.mark.parametrize(
    ("row", "ratio"),
    [
        ({"what": "x", "scheme": "mpisec", "bytes": 8, "plain_us": 2.0, "time_us": 3.0}, 1.5),
        ({"what": "x", "scheme": "mpisec", "bytes": 8, "plain_us": 2.0, "time_us": 3.0, "ratio": 1.4}, 1.4),
        ({"what": "x", "scheme": "mpisec", "bytes": 0, "ratio": 2}, 2),
        ({"what": "x", "scheme": "mpisec", "bytes": 8, "plain_ms": 10, "time_ms": 12}, 1.2),
    ],
)
def test_ratios(tmp_path, row, ratio):
    """A given ratio stands, it is the median of pairs; without one the times make it."""
    assert read(_file(tmp_path, report_samples.document("pingpong", "t", "c", [row]))).rows[0].ratio == ratio


def test_names_of_commands_are_known(tmp_path):
    """mpisec bench writes the command's name; windows may be a condition of all rows."""
    row = {"what": "mbw", "scheme": "mpisec", "bytes": 8, "pairs": 2, "ratio": 1.1}
    found = read(_file(tmp_path, report_samples.document("mbw", "t", "c", [row], conditions={"window": 64})))
    assert (found.benchmark, found.rows[0].window) == ("pairs", 64)
    assert read(_file(tmp_path, report_samples.document("bcast", "t", "c", [row]))).benchmark == "collective"


def test_a_gpu_is_read_as_a_library(tmp_path):
    """`mpisec bench gpu` has no memcpy of the host's to stand beside."""
    row = {"library": "gpu", "version": "a GPU", "cipher": "aes-128-ctr", "bytes": 4096, "threads": 1, "packets": 9}
    row |= {"seal_gb_per_s": 50.0, "open_gb_per_s": 49.0, "one_by_one_gb_per_s": 5.0, "with_copies_gb_per_s": 9.0}
    found = read(_file(tmp_path, report_samples.document("crypto", "AES on a GPU", "mpisec bench gpu", [row])))
    assert [(one.library, one.cipher, one.seal, one.memcpy) for one in found.crypto] == [("gpu", "aes-128-ctr", 50.0, None)]


_GOOD = {"what": "pingpong", "scheme": "mpisec", "bytes": 8, "ratio": 1.1}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "it is empty"),
        ('{"format": "mpisec-res', "was the run interrupted"),
        ("[1, 2]", "not a result of mpisec bench"),
        ({"conditions": {}, "rows": []}, '"format": "mpisec-result-1" is missing'),
        ({"format": "mpisec-result-9"}, "this program reads"),
        (report_samples.document("pingpang", "t", "c", []), "'pingpang' is unknown"),
        (report_samples.document("pingpong", "t", "c", {}), '"rows" must be a list'),
        (report_samples.document("pingpong", "t", "c", [_GOOD, 7]), "row 2 is no object"),
        (report_samples.document("pingpong", "t", "c", [_GOOD | {"ratio": None}]), "row 1 has neither"),
        (
            report_samples.document("pingpong", "t", "c", [_GOOD | {"ratio": -1}]),
            "which is no positive number",
        ),
        (
            report_samples.document("pingpong", "t", "c", [_GOOD | {"ratio": float("nan")}]),
            "no positive number",
        ),
        (report_samples.document("pingpong", "t", "c", [_GOOD | {"ratio": True}]), "no positive number"),
        (report_samples.document("pingpong", "t", "c", [_GOOD | {"scheme": ""}]), '"scheme"'),
        (report_samples.document("pingpong", "t", "c", [_GOOD | {"bytes": None}]), 'lacks "bytes"'),
        (report_samples.document("pingpong", "t", "c", [_GOOD | {"ratio_low": 1.0}]), "only one end"),
        (
            report_samples.document("pingpong", "t", "c", [_GOOD | {"ratio_low": 1.2, "ratio_high": 1.3}]),
            "outside",
        ),
        (report_samples.document("crypto", "t", "c", [{"library": "x", "cipher": "y"}]), 'lacks "bytes"'),
    ],
)
def test_bad_files_get_a_sentence(tmp_path, content, sentence):
    path = _file(tmp_path, content)
    with pytest.raises(ReportError) as error:
        read(path)
    assert sentence in str(error.value)
    assert str(path) in str(error.value)


def test_one_bad_file_leaves_the_others(tmp_path):
    files = [_file(tmp_path, report_samples.startup(), "a.json"), _file(tmp_path, "", "b.json")]
    results, complaints = read_all(files)
    assert [one.file for one in results] == ["a.json"]
    assert len(complaints) == 1
    assert "b.json" in complaints[0]


def test_keys_differ(tmp_path):
    (tmp_path / "x").mkdir()
    files = [
        _file(tmp_path, report_samples.startup(), "A b.json"),
        _file(tmp_path / "x", report_samples.startup(), "a-b.json"),
    ]
    assert [one.key for one in read_all(files)[0]] == ["a-b", "a-b-2"]


def test_files_and_directories(tmp_path):
    (tmp_path / "in").mkdir()
    b, a = _file(tmp_path / "in", "{}", "b.json"), _file(tmp_path, "{}", "a.json")
    (tmp_path / "in" / "note.txt").write_text("no result")
    assert find_files([tmp_path]) == [a, b]
    assert find_files([b, tmp_path]) == [b, a]
    with pytest.raises(ReportError, match="no file or directory"):
        find_files([tmp_path / "absent.json"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReportError, match=r"holds no \.json file"):
        find_files([tmp_path / "empty"])


def test_reads_what_the_producer_writes(tmp_path):
    """mpisec_bench.result writes what this reads: medians, intervals, marks of what was given up."""
    document = result.Result("mbw", "Bandwidth", "mpisec bench mbw", {"cores": 2}, tmp_path / "mbw.json")
    for ratio in (1.1, 1.2, 1.3, 1.4, 1.5, 1.6):
        document.add(
            {"what": "mbw", "bytes": 16, "pairs": 2, "time_us": 10 * ratio, "plain_us": 10.0}, "mpisec"
        )
    document.cap(document.points()[0])
    document.write()
    found = read(tmp_path / "mbw.json")
    row = found.rows[0]
    assert (found.benchmark, found.complete, row.pairs, row.rounds, row.capped) == (
        "pairs",
        False,
        2,
        6,
        True,
    )
    assert (row.low, row.high) == (1.1, 1.6)
    assert row.ratio == pytest.approx(1.35)
