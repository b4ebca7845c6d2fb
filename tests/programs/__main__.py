"""Random MPI programs, plain against sealed.

    PYTHONPATH=tests python3 -m programs run --mpi mpich-5 --seeds 0:1000 --nodes 2 --ranks 4
    PYTHONPATH=tests python3 -m programs replay FILE       a program that was found, with the trace of every rank
    PYTHONPATH=tests python3 -m programs show SEED         a program's text
    PYTHONPATH=tests python3 -m programs all --programs 1250 -o FILE    so many on each of four MPIs, with a result file
    PYTHONPATH=tests python3 -m programs join FILE… -o FILE             one result file of several
    PYTHONPATH=tests python3 -m programs judge FILE     looks again at what differs in a result file
    PYTHONPATH=tests python3 -m programs page           docs/programs.md from docs/results/programs.json
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from .check import Lab, Place, _split, check, verdict
from .everything import MPIS, join, judge
from .everything import run as run_all
from .generate import program
from .page import main as write_page


def _seeds(text: str) -> range:
    first, _, end = text.partition(":")
    return range(int(first), int(end or int(first) + 1))


def _place_of(lines: Sequence[str]) -> Place | None:
    for line in lines:
        if line.startswith("# place "):
            return Place(**json.loads(line[len("# place ") :]))
    return None


def _run(arguments: argparse.Namespace) -> int:
    place = Place(arguments.mpi, arguments.nodes, arguments.ranks, arguments.segments, arguments.fault)
    with Lab() as lab:
        summary = check(lab, place, _seeds(arguments.seeds), batch=arguments.batch, shrink_seconds=arguments.shrink_seconds,
                        report=lambda text: print(text, flush=True))
    if arguments.findings:
        directory = Path(arguments.findings)
        directory.mkdir(parents=True, exist_ok=True)
        for finding in summary.findings + summary.plain_fails:
            (directory / f"{place.mpi}-{finding.seed}.program").write_text(finding.text())
    print(f"{place.name}: {summary.programs} programs, {summary.steps} steps, {sum(summary.calls.values())} calls sealed: {summary.same} the same, "
          f"{len(summary.findings)} differ, {len(summary.plain_fails)} fail plain; {summary.seconds:.0f} s")
    return 1 if summary.findings else 0


def _replay(arguments: argparse.Namespace) -> int:
    lines = Path(arguments.file).read_text().splitlines()
    place = _place_of(lines) or Place(arguments.mpi, arguments.nodes, arguments.ranks)
    if arguments.mpi:
        place = Place(arguments.mpi, arguments.nodes, arguments.ranks)
    programs = _split([line for line in lines if line and not line.startswith("#")])
    with Lab() as lab:
        for plain in (True, False):
            run = lab.run(place, programs, plain=plain, time_limit=15)
            print(f"=== {'plain' if plain else 'sealed'}, {place.name}: exit {run.returncode}\n{run.said}")
            for rank in range(place.ranks):
                print(f"--- rank {rank}")
                print("".join(line for traces in run.traces for line in traces[rank]))
        found = verdict(lab, place, programs)
    print("the same" if found is None else f"{found[0]}: {found[1]}")
    return 0 if found is None else 1


def _all(arguments: argparse.Namespace) -> int:
    everything = run_all(arguments.mpis.split(","), arguments.programs, arguments.first_seed, arguments.out, arguments.shrink_seconds,
                         report=lambda text: print(text, flush=True))
    return 1 if everything.findings else 0


def _join(arguments: argparse.Namespace) -> int:
    return 1 if join(arguments.files, arguments.out)["findings"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="programs of many seeds")
    run.add_argument("--seeds", default="0:100", help="FIRST:END")
    run.add_argument("--batch", type=int, default=50, help="programs in one job")
    run.add_argument("--segments", type=int, default=0, choices=(0, 1), help="0: messages of 64 KiB travel in segments, 1: of 4 KiB")
    run.add_argument("--fault", default="", help="an error to be found: corrupt:VERB[:KIND], stop:…, hang:… (sealed runs only)")
    run.add_argument("--shrink-seconds", type=float, default=300)
    run.add_argument("--findings", help="directory for the programs that differ")
    run.set_defaults(action=_run, mpi="mpich-5")
    replay = commands.add_parser("replay", help="one program from a file")
    replay.add_argument("file")
    replay.set_defaults(action=_replay)
    for command, mpi in ((run, "mpich-5"), (replay, None)):
        command.add_argument("--mpi", default=mpi)
        command.add_argument("--nodes", type=int, default=2)
        command.add_argument("--ranks", type=int, default=4)
    everything = commands.add_parser("all", help="programs on four MPIs and several placements")
    everything.add_argument("--mpis", default=",".join(MPIS))
    everything.add_argument("--programs", type=int, default=1250, help="on each MPI")
    everything.add_argument("--first-seed", type=int, default=0)
    everything.add_argument("--shrink-seconds", type=float, default=120)
    everything.add_argument("-o", "--out", required=True)
    everything.set_defaults(action=_all)
    joining = commands.add_parser("join", help="one result file of several")
    joining.add_argument("files", nargs="+")
    joining.add_argument("-o", "--out", required=True)
    joining.set_defaults(action=_join)
    judging = commands.add_parser("judge", help="looks again at what differs in a result file")
    judging.add_argument("file")
    judging.set_defaults(action=lambda arguments: 1 if judge(arguments.file) else 0)
    commands.add_parser("page", help="the page of the results").set_defaults(action=lambda _: write_page())
    show = commands.add_parser("show", help="the text of a program")
    show.add_argument("seed", type=int)
    show.set_defaults(action=lambda arguments: print("\n".join(program(arguments.seed))))
    arguments = parser.parse_args()
    return int(arguments.action(arguments) or 0)


if __name__ == "__main__":
    sys.exit(main())
