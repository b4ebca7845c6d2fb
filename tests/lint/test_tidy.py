"""What `make tidy` says of C++ sources (tools/tidy.py). The whole tree takes minutes and has a job of its own in CI."""

import os
import re
import shutil
from pathlib import Path

import pytest

TOOL = "tidy.py"
PROGRAM = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
ROOT = Path(__file__).resolve().parents[2]
USED_AFTER_MOVE = """#include <utility>
#include "held.hpp"
int taken(Held held) {{
    const Held other = std::move(held);
    return other.value + held.value;{exception}
}}
"""
HELD = "struct Held { Held(Held&& other) noexcept; int value; };\n"


@pytest.fixture(autouse=True)
def _needs_clang_tidy():
    if not PROGRAM:
        if os.environ.get("MPISEC_LAB_REQUIRED") == "1":
            pytest.fail("MPISEC_LAB_REQUIRED=1, but clang-tidy is not installed")
        pytest.skip("clang-tidy is not installed")


@pytest.fixture
def write(tmp_path):
    def written(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    written("held.hpp", HELD)
    return written


def headlines(lines):
    """[(line, check), …] of the findings in `lines`, without their explanations."""
    found = (re.match(r"\S+\.[ch]pp:(\d+):\d+: error: .* \[([\w.-]+)(?:,-warnings-as-errors)?\]$", line) for line in lines)
    return [(int(match[1]), match[2]) for match in found if match]


def test_a_clean_file(judged, write):
    assert judged(write("a.cpp", "int twice(int number) { return 2 * number; }\n")) == (0, ["tidy: 0 findings in 1 sources"])


def test_a_use_after_move(judged, write):
    status, lines = judged(write("a.cpp", USED_AFTER_MOVE.format(exception="")))
    assert (status, headlines(lines), lines[-1]) == (1, [(5, "bugprone-use-after-move")], "tidy: 1 findings in 1 sources")


def test_an_exception_is_for_the_check_that_it_names(judged, write):
    meant = write("a.cpp", USED_AFTER_MOVE.format(exception="  // NOLINT(bugprone-use-after-move): its move only copies"))
    other = write("b.cpp", USED_AFTER_MOVE.format(exception="  // NOLINT(bugprone-sizeof-expression): another"))
    assert judged(meant) == (0, ["tidy: 0 findings in 1 sources"])
    assert headlines(judged(other)[1]) == [(5, "bugprone-use-after-move")]


def test_what_cannot_be_compiled_is_a_finding(judged, write):
    status, lines = judged(write("a.cpp", "int f() { return undeclared; }\n"))
    assert (status, headlines(lines)) == (1, [(1, "clang-diagnostic-error")])
    assert judged(write("a.cpp", "").with_name("nowhere.cpp"))[0] == 1


def test_what_was_clean_is_judged_again_when_a_header_changes(judged, write):
    write("parts.hpp", "inline int parts() { return 2; }\n")
    source = write("a.cpp", '#include "parts.hpp"\nint share(int whole) { return whole / parts(); }\n')
    assert judged(source) == (0, ["tidy: 0 findings in 1 sources"])
    write("parts.hpp", "inline int parts() { return 0; }\n")
    status, lines = judged(source)
    assert (status, headlines(lines)) == (1, [(2, "clang-analyzer-core.DivideZero")])


def test_what_was_clean_in_another_checkout_is_clean(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import tidy

    def key(place, text):
        (tmp_path / place / "src").mkdir(parents=True)
        (tmp_path / place / "src/half.hpp").write_text(f"inline int half(int whole) {{ return whole / {text}; }}\n")
        source = tmp_path / place / "src/a.cpp"
        source.write_text('#include "half.hpp"\nint quarter(int whole) { return half(half(whole)); }\n')
        (tmp_path / place / ".clang-tidy").write_text("Checks: '-*,clang-analyzer-*'\n")
        monkeypatch.setattr(tidy, "ROOT", tmp_path / place)
        return tidy.Judge(PROGRAM, {}).key(source, ["-std=c++20", f"-I{tmp_path / place}/src"], [])

    assert key("one", "2") == key("two", "2") != key("three", "0")


def test_no_source_of_the_shim_goes_unjudged(tmp_path, monkeypatch):
    """Where the build compiles one that it does not find, nothing is judged."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import tidy

    (tmp_path / "database.json").write_text("[]")
    monkeypatch.setattr(tidy, "DATABASE", tmp_path / "database.json")
    monkeypatch.setattr(tidy, "ROOT", tmp_path)
    monkeypatch.setattr(tidy, "OF_SHIM", tmp_path / "src/shim")
    monkeypatch.setattr(tidy, "CLEAN", tmp_path / "clean")
    assert isinstance(tidy.ready(named=False), tidy.Judge)
    (tmp_path / "src/shim/calls").mkdir(parents=True)
    (tmp_path / "src/shim/calls/send.cpp").write_text("")
    assert "src/shim/calls/send.cpp" in tidy.ready(named=False)


def test_without_clang_tidy_it_names_the_package(judged, write, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    status, [line] = judged(write("a.cpp", ""))
    assert status == 2
    assert "install the package clang-tidy-14" in line


def test_every_exception_in_the_tree_names_its_check_and_says_why():
    places = [path for name in ("src", "tests") for path in (ROOT / name).rglob("*.[ch]pp")]
    marks = [(path.name, line.strip()) for path in places for line in path.read_text().splitlines() if "NOLINT" in line]
    assert [mark for mark in marks if not re.search(r"NOLINT(NEXTLINE)?\([\w.,* -]+\): \w", mark[1])] == []


def test_every_check_that_is_left_out_has_a_reason():
    reasons, checks = (ROOT / ".clang-tidy").read_text().split("Checks: >-")
    left_out = [name.rstrip("*") for name in re.findall(r"^  -([a-z][\w.*-]+),?$", checks, re.MULTILINE)]
    assert len(left_out) > 20
    explained = reasons.replace("cert-", "").replace("clang-analyzer-", "")
    assert [name for name in left_out if name.removeprefix("cert-").removeprefix("clang-analyzer-") not in explained] == []
