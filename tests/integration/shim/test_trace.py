"""MPISEC_TRACE: a Chrome trace of each rank whose spans nest and whose bytes add up, and nothing of keys or content in it."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from mpisec_lab import places
from mpisec_lab.errors import LabError

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))
from mpisec_bench import timeline

PROGRAM = Path(__file__).with_name("trace.c")
LARGE = 1_300_000
FACTS = {"bytes", "peer", "message", "segment", "looks"}


@pytest.fixture(scope="module", params=["mpich-5", "openmpi-5"])
def traces(request, run, compile_mpi, tmp_path_factory):
    """({rank: document}, directory) of a job whose large messages travel in segments, with workers too."""
    directory = tmp_path_factory.mktemp("trace") / "made"
    result = run([compile_mpi(PROGRAM, request.param), LARGE], mpi=request.param, env={"MPISEC_TRACE": directory, "MPISEC_WORKERS": "1"})
    assert result.returncode == 0, result.stderr[-3000:]
    return {rank: json.loads((directory / f"rank-{rank}.json").read_text()) for rank in (0, 1)}, directory


def spans(document, kind="X"):
    return [event for event in document["traceEvents"] if event["ph"] == kind]


def test_spans_nest(traces):
    """On each track: what begins inside another span ends inside it."""
    for document in traces[0].values():
        by_track = defaultdict(list)
        for span in spans(document):
            # Nanoseconds again, exactly: both numbers have three decimals.
            begin = round(span["ts"] * 1000)
            by_track[span["tid"]].append((begin, begin + round(span["dur"] * 1000), span["name"]))
        assert len(by_track) >= 1
        for found in by_track.values():
            outer = []
            for begin, end, name in sorted(found, key=lambda span: (span[0], -span[1])):
                while outer and outer[-1][1] <= begin:
                    outer.pop()
                assert not outer or end <= outer[-1][1], (name, begin, end, outer[-1])
                outer.append((begin, end, name))


def test_bytes_add_up(traces):
    """Sealed on one rank, handed over, under way and opened on the other: the same segments of the same three messages."""
    documents, _ = traces
    seen = {}
    for name, rank, kind in (("seal segment", 0, "X"), ("open segment", 1, "X"), ("hand over", 0, "X"), ("sending", 0, "b"), ("receiving", 1, "b")):
        seen[name] = Counter()
        for span in spans(documents[rank], kind):
            if span["name"] == name:
                facts = span["args"]
                assert facts["peer"] == 1 - rank
                seen[name][facts["message"], facts["segment"], facts["bytes"]] += 1
    assert set(seen["seal segment"].values()) == {1}
    assert len({message for message, _, _ in seen["seal segment"]}) == 3
    assert sum(size for _, _, size in seen["seal segment"]) == 3 * LARGE
    assert seen["open segment"] == seen["seal segment"]
    later = Counter(segment for segment in seen["seal segment"] if segment[1] > 0)  # number 0 travels with the header
    assert seen["hand over"] == seen["sending"] == seen["receiving"] == later
    assert next(span["args"]["bytes"] for span in spans(documents[0]) if span["name"] == "seal") == 4


def test_calls_are_there(traces):
    documents, _ = traces
    calls = [[span["name"] for span in sorted(spans(document), key=lambda span: span["ts"])
              if span["name"] in ("MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce")] for document in documents.values()]
    assert calls[0] == ["MPI_Send", "MPI_Send", "MPI_Isend", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce"]
    assert calls[1] == ["MPI_Recv", "MPI_Recv", "MPI_Irecv", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce"]
    for rank, document in documents.items():
        assert document["otherData"]["rank"] == rank and document["otherData"]["dropped"] == 0


def test_no_keys_and_no_content(traces):
    """Names from a short list, and numbers; readable by the user alone."""
    documents, directory = traces
    for rank, document in documents.items():
        file = directory / f"rank-{rank}.json"
        assert file.stat().st_mode & 0o777 == 0o600 and b"SECRET" not in file.read_bytes()
        for event in document["traceEvents"]:
            assert set(event) <= {"name", "cat", "ph", "pid", "tid", "ts", "dur", "id", "args"}
            if event["ph"] != "M":
                assert set(event["args"]) <= FACTS and all(isinstance(fact, int) for fact in event["args"].values()), event
    assert directory.stat().st_mode & 0o777 == 0o700


def test_timeline(traces, tmp_path):
    """The table, the picture of a message and the merged file of `mpisec bench timeline`."""
    documents, directory = traces
    picture, merged = tmp_path / "message.svg", tmp_path / "all.json"
    command = [places.find_mpisec(), "bench", "timeline", directory, "--svg", picture, "--merge", merged]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sealed = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("seal segment")]
    assert int(sealed[0][-1]) == 3 * LARGE
    assert f"A message of {LARGE} bytes" in picture.read_text() and picture.read_text().count("<rect") > 8
    assert len(json.loads(merged.read_text())["traceEvents"]) == sum(len(document["traceEvents"]) for document in documents.values())
    with pytest.raises(LabError, match="no large message"):
        timeline.pick(timeline.read(directory), 77)
    with pytest.raises(LabError, match="MPISEC_TRACE"):
        timeline.read(tmp_path)


def test_a_directory_that_cannot_be_made(run, compile_mpi, tmp_path):
    """Said on standard error; the job is none the worse."""
    (tmp_path / "file").write_text("")
    result = run([compile_mpi(PROGRAM, "mpich-5"), 16], env={"MPISEC_TRACE": tmp_path / "file"})
    assert result.returncode == 0, result.stderr[-3000:]
    assert "MPISEC_TRACE: cannot write" in result.stderr
