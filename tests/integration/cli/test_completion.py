"""Completion for bash (tools/completion.py): every subcommand and option that a command's help names is offered behind it."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from mpisec_program import program  # noqa: F401 (a fixture)
from test_manual import helps, subcommands  # noqa: F401 (a fixture)

TOOL = Path(__file__).resolve().parents[3] / "tools" / "completion.py"


@pytest.fixture(scope="module")
def offered(program, tmp_path_factory):
    """offered([words typed, …]): for each, what bash offers for its last word."""
    file = tmp_path_factory.mktemp("completion") / "mpisec"
    subprocess.run([sys.executable, TOOL, program, file], check=True)

    def ask(lines):
        script = f"source {file}\n" + "".join(
            f'COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _mpisec; echo "${{COMPREPLY[*]}}"\n' for words in lines
        )
        asked = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert not asked.stderr, asked.stderr
        return [line.split() for line in asked.stdout.splitlines()]

    return ask


@pytest.mark.slow
def test_every_option_and_subcommand(helps, offered):
    options = offered([["mpisec", *words, "-"] for words in helps])
    names = offered([["mpisec", *words, ""] for words in helps])
    for text, dashed, all_words in zip(helps.values(), options, names):
        listed = re.findall(r"^ {2,4}(-{1,2}[a-zA-Z][\w-]*)(?:[, ]+(--[a-zA-Z][\w-]*))?", text, re.MULTILINE)
        expected = {option for pair in listed for option in pair if option}
        assert expected and expected <= set(dashed), text
        assert set(subcommands(text)) <= set(all_words), text


@pytest.mark.slow
def test_programs_and_files(offered):
    found, nothing, prefix = offered([["mpisec", "exec", "bas"], ["mpisec", "exec", "--", ""], ["mpisec", "do"]])
    assert "bash" in found and nothing == [] and prefix == ["doctor"]
