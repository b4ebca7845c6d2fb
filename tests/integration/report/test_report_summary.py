"""Sentences at the top of the page follow from the data, whichever way it speaks."""

import json

import report_samples

from mpisec_bench.report import figures, measures, wording
from mpisec_bench.report.reading import read
from mpisec_bench.report.summary import summarise


def _results(tmp_path, *documents):
    paths = [tmp_path / f"r{i}.json" for i in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return [read(path, keys) for keys in [set()] for path in paths]


def _pair(mine, theirs, spread=0.02, **changes):
    """A ping-pong of 1 MiB with MPIsec at one ratio and IPsec at another."""
    rows = [
        report_samples.row("pingpong", scheme, ratio, 200.0, spread, bytes=1 << 20)
        for scheme, ratio in (("mpisec", mine), ("ipsec", theirs))
    ]
    return report_samples.document("pingpong", "Ping-pong", "mpisec bench pingpong", rows, **changes)


def _said(items):
    return " ".join(item if isinstance(item, str) else item[1] for item in items)


def test_summary_of_a_win(tmp_path):
    summary = summarise(_results(tmp_path, _pair(1.2, 3.0)))
    assert "wins 1 and loses 0" in _said(summary.losses)
    assert "MPIsec takes 1.20 (1.18–1.22; 1 MiB) times plain MPI’s time" in _said(summary.short)
    assert "IPsec takes 2.50 (2.40–2.60; 1 MiB) times MPIsec’s" in _said(summary.short)
    assert "is faster than MPIsec" not in _said(summary.losses)


def test_a_loss_is_said_as_plainly(tmp_path):
    summary = summarise(_results(tmp_path, _pair(3.0, 1.2)))
    assert "wins 0 and loses 1" in _said(summary.losses)
    assert "IPsec is faster than MPIsec at 1 MiB: it takes 0.40 (0.38–0.42) of MPIsec’s time" in _said(
        summary.losses
    )


def test_overlapping_intervals_claim_nothing(tmp_path):
    said = _said(summarise(_results(tmp_path, _pair(1.20, 1.22, 0.05))).losses)
    assert "wins 0 and loses 0" in said
    assert "in 1 the intervals overlap" in said


def test_without_intervals_nothing_is_claimed(tmp_path):
    document = _pair(1.2, 9.0)
    for row in document["rows"]:
        del row["ratio_low"], row["ratio_high"]
    summary = summarise(_results(tmp_path, document))
    assert "wins 0 and loses 0" in _said(summary.losses)
    assert "2 of 2 ratios come without an interval" in _said(summary.cautions)
    assert "slower at 0 of 1 points" in _said(summary.losses)


def test_interrupted_unreadable_capped_and_user_space_are_said(tmp_path):
    document = _pair(1.2, 3.0, complete=False)
    document["rows"][0]["capped"] = True
    for key in ("where", "runs_in"):
        document["conditions"]["overlays"] = {"ipsec": {key: "user space", "data_plane": "libipsec"}}
        summary = summarise(_results(tmp_path, document), ["x.json cannot be used: it is empty"])
        said = _said(summary.cautions)
        assert "Interrupted: r0.json" in said
        assert "x.json cannot be used" in said
        assert "IPsec ran with its data plane in user space (libipsec)" in said
        assert "1 of 2 ratios are marked †" in said
        assert "IPsec (user space)" in {headline.label for headline in summary.headlines}


def test_no_other_network_means_no_word_about_them(tmp_path):
    document = report_samples.pingpong(("mpisec",))
    assert "No other encrypted network was measured" in _said(summarise(_results(tmp_path, document)).losses)


def test_bare_vxlan_is_no_rival(tmp_path):
    """It encrypts nothing: to be slower than it is no defeat."""
    document = report_samples.pingpong(("mpisec", "vxlan"))
    assert "No other encrypted network was measured" in _said(summarise(_results(tmp_path, document)).losses)


def test_kernels_are_summed_not_averaged(tmp_path):
    summary = summarise(_results(tmp_path, report_samples.kernels()))
    total = next(row for row in report_samples.kernels()["rows"] if row["what"] == "total")
    assert f"MPIsec takes {wording.ratio(total['ratio'])}" in _said(summary.short)
    assert "all kernels" in _said(summary.short)


def test_scarce_cores_are_said(tmp_path):
    assert "no core is left over" in _said(summarise(_results(tmp_path, _pair(1.2, 3.0))).machine)
    many = _pair(1.2, 3.0, conditions={"cores": 64})
    assert "no core is left over" not in _said(summarise(_results(tmp_path, many)).machine)


def test_throughput_of_windows(tmp_path):
    """64 messages of 16 KiB from each of 2 pairs in 1 ms: 2097 MB/s, both ways twice that. Without the window's length, nothing."""
    row = report_samples.row("mbw", "mpisec", 2.0, 500.0, bytes=16384, pairs=2, window=64)
    rows = (row, {**row, "window": None}, {**row, "ways": 2})
    known, unknown, both_ways = _results(tmp_path, *(report_samples.document("mbw", "t", "c", [r]) for r in rows))
    assert round(measures.throughput(known.rows[0])) == 2097
    assert round(measures.plain_throughput(known.rows[0])) == 4194
    assert measures.throughput(unknown.rows[0]) is None
    assert measures.throughput(both_ways.rows[0]) == 2 * measures.throughput(known.rows[0])


def test_every_benchmark_gets_figures_that_hold_its_numbers(tmp_path):
    for result in _results(tmp_path, *report_samples.everything().values()):
        plots = [figure.plot for _, shown in figures.of_result(result) for figure in shown]
        assert plots, result.benchmark
        assert len({plot.name for plot in plots}) == len(plots)
    ours = {
        line.label: line for line in plots_of(tmp_path, report_samples.pingpong())["pingpong-overhead"].lines
    }
    assert ours["MPIsec"].ys == report_samples.RATIOS["mpisec"]
    assert ours["MPIsec"].hollow == [False] * 5 + [True]


def plots_of(tmp_path, document):
    (result,) = _results(tmp_path, document)
    return {figure.plot.name: figure.plot for _, shown in figures.of_result(result) for figure in shown}


def test_ours_and_theirs_share_axes(tmp_path):
    for document, name in (
        (report_samples.pingpong(), "pingpong-beside-gavahi"),
        (report_samples.pingpong(), "pingpong-beside-naser"),
        (report_samples.collective(), "allgather-beside-gavahi"),
        (report_samples.collective(), "allgather-beside-lahijani"),
        (report_samples.collective("bcast"), "bcast-beside-naser"),
        (report_samples.kernels(), "kernels-class-a-beside-gavahi"),
        (report_samples.kernels(), "kernels-class-a-beside-naser"),
    ):
        plot = plots_of(tmp_path, document)[name]
        assert {line.theirs for line in plot.lines} == {True, False}, name
        styles = [(line.colour, line.marker, line.theirs) for line in plot.lines]
        assert len(set(styles)) == len(styles), name


def test_how_fast_a_slow_network_is_without_mpi_is_said(tmp_path):
    overlays = {"ipsec": {"runs_in": "user space", "data_plane": "x", "raw_tcp_bits_per_second": 3.5e8}}
    document = _pair(1.2, 3.0, conditions={"overlays": overlays, "raw_tcp_bits_per_second": 1.8e10})
    said = _said(summarise(_results(tmp_path, document)).cautions)
    assert "(x; one TCP connection: 0.35 Gbit/s, beside it 18 Gbit/s)" in said


def test_whose_rate_it_is_is_said():
    """Older files hold results of labs in which every connection had the rate to itself."""
    old = {"rate_bits_per_second": 1e10}
    assert wording.link(old) == "link of 10 Gbit/s per connection"
    assert wording.link(old | {"rate_of": "node"}) == "link of 10 Gbit/s"
    assert wording.link({"rate_bits_per_second": None}) == "unshaped link"
