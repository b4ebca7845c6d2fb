#!/usr/bin/env python3
"""completion.py PROGRAM FILE: bash's completion of mpisec, its subcommands and options, made of what they say with --help (manual.py), so that
none can be missing."""

import argparse
import re
from pathlib import Path

from manual import Page, read_all

_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")

# The command is as many words as are known; bash's own completion, of file names, does what is none of its words. Behind `exec` there are programs.
_SCRIPT = """\
# Completion of mpisec for bash. Made by tools/completion.py from the program's help.
_mpisec() {{
    local -A words=(
{words}
    )
    local current=${{COMP_WORDS[COMP_CWORD]}} command=mpisec at
    for ((at = 1; at < COMP_CWORD; at++)); do
        [[ -v "words[$command ${{COMP_WORDS[at]}}]" ]] || break
        command+=" ${{COMP_WORDS[at]}}"
    done
    COMPREPLY=()
    [[ ${{COMP_WORDS[*]:0:COMP_CWORD}} == *" -- "* || ${{COMP_WORDS[COMP_CWORD - 1]}} == -- ]] && return
    mapfile -t COMPREPLY < <(compgen -W "${{words[$command]}}" -- "$current")
    if [[ $command == "mpisec exec" && $current != -* ]]; then
        mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -c -- "$current")
    fi
}}
complete -o default -F _mpisec mpisec
"""


def words_of(page: Page) -> list[str]:
    """What may follow a command: its subcommands and options."""
    names = [name for names, _ in page.subcommands for name in names]
    options = [option for _, items in page.sections for term, _ in items for option in _OPTION.findall(term)]
    return list(dict.fromkeys([*names, *options]))


def script(pages: list[Page]) -> str:
    """The text of the completion."""
    lines = [f'        ["{" ".join(page.words)}"]="{" ".join(words_of(page))}"' for page in pages]
    return _SCRIPT.format(words="\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    arguments.file.write_text(script(read_all(arguments.program)), encoding="utf-8")


if __name__ == "__main__":
    main()
