"""docs/conformance.md from docs/results/conformance.json."""

from harness.judge import OUTCOMES

_HEAD = """# Conformance

Programs that others wrote, run plain and sealed on nodes of the [lab](lab.md), and the outcome of each. `{command}` made this page and
[results/conformance.json](results/conformance.json), in {minutes} minutes, between {first} and {last}, on {machine}.
`make conformance CONFORMANCE="hpcc lammps"` runs only these suites and replaces their results; the table names the commit that MPIsec was built from.
A row says what that commit did: a call that a row names as refused may be sealed by now. [procedures.md](procedures.md) says what is refused now.

| outcome | |
| --- | --- |
| same | the sealed program succeeds, and its output is the same as plain |
| refused | the program uses something that MPIsec refuses between nodes today, and MPIsec says so |
| excepted | a known difference, with its reason below |
| failed plain too | the program does not pass without MPIsec on these nodes either, so it says nothing about MPIsec |
| nothing sealed | as plain, but no message crossed between nodes: it shows only that MPIsec does not disturb the program |
| **differs** | anything else; `make conformance` fails |

First, plain runs are compared with each other, one of them with another order of summation. Where plain runs differ, numbers are compared within the
tolerance named, or not at all where none is named. Everything else is compared letter by letter, except lines with times, which are left out.
"""


def render(results):
    """The page's text."""
    conditions, dates = results["conditions"], sorted(suite["started"] for suite in results["suites"])
    seconds = sum(suite["seconds"] for suite in results["suites"])
    parts = [_HEAD.format(command=results["command"], first=dates[0], last=dates[-1], minutes=round(seconds / 60),
                          machine=conditions["machine"]), _table(results["suites"]), _compared(results["suites"])]
    for outcome, title in (("differs", "What differs"), ("excepted", "Known differences"), ("refused", "What is refused"),
                           ("failed plain too", "What fails plain too")):
        parts.append(_section(results["suites"], outcome, title))
    parts.append(_left_out(results))
    return "\n".join(part for part in parts if part)


def _table(suites):
    head = ["suite", "version", "from", "MPI", "nodes × ranks", "programs", *OUTCOMES, "messages sealed", "seconds", "commit"]
    rows = [head, ["---"] * len(head)]
    for suite in suites:
        counts = suite["counts"]
        rows.append([suite["name"], suite["version"], suite["origin"], suite["mpi"], f"{suite['nodes']} × {suite['ranks']}", str(sum(counts.values())),
                     *(str(counts.get(outcome, 0)) for outcome in OUTCOMES), f"{suite['messages']:,}", str(round(suite["seconds"])), suite["commit"]])
    totals = [sum(suite["counts"].get(outcome, 0) for suite in suites) for outcome in OUTCOMES]
    rows.append(["**all**", "", "", "", "", str(sum(totals)), *map(str, totals), f"{sum(suite['messages'] for suite in suites):,}",
                 str(round(sum(suite["seconds"] for suite in suites))), ""])
    return "## Results\n\n" + "".join("| " + " | ".join(row) + " |\n" for row in rows) + (
        "\nRanks are those of the whole job. In suites that run many tests in one job (mpi4py and other Python suites), each test counts as a program.\n")


def _compared(suites):
    seen = {}
    for suite in suites:
        seen.setdefault(suite["name"], suite["compared"])
    return "## What is compared\n\n" + "".join(f"- **{name}**: {text}.\n" for name, text in seen.items())


def _section(suites, outcome, title):
    """Cases of one outcome, those of a suite with the same detail together."""
    lines = []
    for suite in suites:
        together = {}
        for case, (what, detail) in suite["cases"].items():
            if what == outcome:
                together.setdefault(_cell(detail), []).append(case)
        for detail, cases in together.items():
            shown = ", ".join(f"`{case}`" for case in cases[:8]) + (f" and {len(cases) - 8} more" if len(cases) > 8 else "")
            lines.append(f"| {suite['name']}, {suite['mpi']} | {shown} | {detail} |\n")
    return f"## {title}\n\n| suite | programs | |\n| --- | --- | --- |\n" + "".join(lines) if lines else ""


def _cell(text):
    return " ".join(text.split()).replace("|", "¦").replace("<", "&lt;")


def _left_out(results):
    lines = [f"- **{name}**: {reason}\n" for name, reason in [*results["missing"].items(), *results["left_out"].items()]]
    return "## Looked at and not in\n\n" + "".join(lines) if lines else ""
