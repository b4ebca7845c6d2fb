"""The command: exit status, sentences, files."""

import json
import os

import report_samples


def test_writes_page_and_plots(report, tmp_path):
    results = report_samples.write(tmp_path / "results", {"pingpong": report_samples.pingpong()})
    done = report(results, "-o", tmp_path / "out.html", "--plots", tmp_path / "plots")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "out.html").read_text()
    assert "1.42† (1.25–1.59)" in page
    assert "mpisec bench pingpong --against vxlan,wireguard,ipsec" in page
    files = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert "pingpong-pingpong-overhead.png" in files
    assert "pingpong-pingpong-overhead.svg" in files
    for path in (tmp_path / "plots").iterdir():
        head = path.read_bytes()[:300]
        assert head.startswith(b"\x89PNG") if path.suffix == ".png" else b"<svg" in path.read_bytes()
    assert "#fe" not in (tmp_path / "plots" / "pingpong-pingpong-overhead.svg").read_text()


def test_equal_results_make_equal_pages(report, tmp_path):
    results = report_samples.write(
        tmp_path / "results", {"k": report_samples.kernels(), "s": report_samples.startup()}
    )
    for name in ("a.html", "b.html"):
        assert report(results, "-o", tmp_path / name).returncode == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_nothing_to_show(report, tmp_path):
    report_samples.write(tmp_path, {"a": report_samples.document("pingpong", "t", "c", [], complete=False)})
    done = report(tmp_path, "-o", tmp_path / "out.html")
    assert done.returncode == 1
    assert (
        done.stderr
        == "mpisec report: there is nothing to show. a.json has no rows: its run ended before the first one\n"
    )
    assert not (tmp_path / "out.html").exists()


def test_missing_file(report, tmp_path):
    done = report(tmp_path / "absent.json", "-o", tmp_path / "out.html")
    assert done.returncode == 1
    assert done.stderr == f"mpisec report: there is no file or directory {tmp_path / 'absent.json'}\n"


def test_bad_and_interrupted_files_are_marked(report, tmp_path):
    results = report_samples.write(
        tmp_path / "r",
        {"a": report_samples.pingpong(complete=False), "b": '{"format": "mpi', "c": '{"format": "other"}'},
    )
    done = report(results, "-o", tmp_path / "out.html")
    assert done.returncode == 3
    assert "a.json is of an interrupted run" in done.stderr
    page = (tmp_path / "out.html").read_text()
    assert "interrupted run</span>" in page
    assert "b.json cannot be used: it is no JSON" in page
    assert "c.json cannot be used: its format is &#39;other&#39;" in page


def test_unwritable_output(report, tmp_path):
    results = report_samples.write(tmp_path / "r", {"a": report_samples.startup()})
    done = report(results, "-o", tmp_path / "absent" / "out.html")
    assert done.returncode == 1
    assert "out.html cannot be written: No such file or directory" in done.stderr


def test_without_matplotlib_a_sentence(report, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['matplotlib'] = None\n")
    results = report_samples.write(tmp_path / "r", {"a": report_samples.startup()})
    path = os.pathsep.join([str(tmp_path), *(p for p in __import__("sys").path if p)])
    done = report(results, "-o", tmp_path / "out.html", environment={"PYTHONPATH": path})
    assert done.returncode == 1
    assert "the report needs matplotlib, which this Python lacks: pip install matplotlib" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_files_say_can_not_become_markup(report, tmp_path):
    bad = "<script>alert(1)</script>"
    content = report_samples.pingpong(
        ("mpisec",), title=bad, command=bad, conditions={"cpu": bad, "x": {"y": bad}}
    )
    content["rows"] = [row | {"what": bad} for row in content["rows"]]
    (tmp_path / "a.json").write_text(json.dumps(content))
    done = report(tmp_path / "a.json", "-o", tmp_path / "out.html", "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    assert "<script" not in (tmp_path / "out.html").read_text()


def test_odd_sizes_and_single_points(report, tmp_path):
    """Zero bytes, one point, one pair, a kernel without class, conditions of other types."""
    rows = [report_samples.row("x", "mpisec", 1.1, 5.0, bytes=size) for size in (0, 1, 1024)]
    files = {
        "zero": report_samples.document(
            "external", "t", "c", [*rows, report_samples.row("osu_barrier", "mpisec", 1.0, 9.0)]
        ),
        "one": report_samples.document(
            "pingpong", "t", "c", rows[1:2], conditions={"overlays": [], "cores": None, "cpu": None}
        ),
        "equal": report_samples.document(
            "mbw", "t", "c", [report_samples.row("mbw", "ipsec", 1.0, 5.0, 0, bytes=64, pairs=1)]
        ),
    }
    done = report(report_samples.write(tmp_path / "r", files), "-o", tmp_path / "out.html")
    assert done.returncode == 0, done.stderr
