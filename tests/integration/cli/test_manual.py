"""Manual pages (tools/manual.py): one for each command, and in it every option and word of the command's help."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpisec_program import program  # noqa: F401 (a fixture)

MANUAL = Path(__file__).resolve().parents[3] / "tools" / "manual.py"
# CLI11's notation of types and conditions, which pages say in words, and what both libraries print around texts.
NOTATION = re.compile(r":\{|:\w+ in \[|:SIZE \[|Excludes:|Needs:|REQUIRED|\.\.\.$")

HEADING = re.compile(r"\w[\w ]*:$|  \{[\w,-]+\}$")  # of a section, and argparse's list of subcommands


def help_of(program, words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MPISEC_")} | {"COLUMNS": "100"}
    return subprocess.run([program, *words, "--help"], env=environment, capture_output=True, text=True, check=True, timeout=60).stdout


def subcommands(text):
    """Names that a help lists below "Subcommands:" (CLI11) or {a,b,c} (argparse)."""
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    if listed:
        return re.findall(r"^  (\w[\w-]*)", listed[1], re.MULTILINE)
    choices = re.search(r"^positional arguments:\n  \{([\w,-]+)\}", text, re.MULTILINE)
    return choices[1].split(",") if choices else []


def commands(program, words=()):
    """{("bench", "pingpong"): help, …} of all commands."""
    text = help_of(program, words)
    found = {words: text}
    for name in subcommands(text):
        found |= commands(program, (*words, name))
    return found


@pytest.fixture(scope="module")
def helps(program):
    return commands(program)


@pytest.fixture(scope="module")
def pages(program, tmp_path_factory):
    directory = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, MANUAL, program, directory], check=True)
    return {page.name: page for page in directory.iterdir()}


def rendered(page):
    """The page's text as man shows it, on lines that are never broken; fails on anything that groff warns of."""
    if not shutil.which("groff"):
        (pytest.fail if os.environ.get("MPISEC_LAB_REQUIRED") == "1" else pytest.skip)("groff is not installed")
    wide = ["groff", "-man", "-Tutf8", "-ww", "-rLL=4000n", "-P-c", "-P-b", "-P-u", page]
    ran = subprocess.run(wide, capture_output=True, text=True, check=True)
    assert not ran.stderr, ran.stderr
    return ran.stdout.replace("‐", "-").replace("−", "-")


def squeezed(text):
    return re.sub(r"\s+", "", text)


@pytest.mark.slow
def test_every_command_has_a_page(helps, pages):
    assert len(helps) > 40
    assert {"-".join(("mpisec", *words)) + ".1" for words in helps} == set(pages)


@pytest.mark.slow
def test_every_option_and_every_text_of_the_help_is_in_its_page(helps, pages):
    for words, text in helps.items():
        page = squeezed(rendered(pages["-".join(("mpisec", *words)) + ".1"]))
        for option in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", text):
            assert option in page, (words, option)
        for line in text.splitlines():
            for part in re.split(r" {2,}", line.strip()):
                if not NOTATION.search(part) and not HEADING.match(line):
                    assert squeezed(re.sub(r"^[Uu]sage: ", "", part)) in page, (words, line)


@pytest.mark.slow
def test_pages_refer_to_pages(pages):
    for page in pages.values():
        for name in re.findall(r"\\fB([\w\\-]+)\\fR\(1\)", page.read_text()):
            assert name.replace("\\", "") + ".1" in pages, (page.name, name)
