"""python3 -m mpisec_bench pingpong|mbw|startup|allgather|… …; `mpisec bench …` runs this."""

import argparse
import functools
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mpisec_bench import collective, everything, external, io, kernels, mbw, owncost, partitioned, pingpong, provider, rma, schemes, startup, timeline
from mpisec_bench.collectives import algorithms
from mpisec_bench.conditions import add_common_arguments, conditions
from mpisec_bench.jobs import Jobs, LabJobs, LaunchedJobs
from mpisec_bench.progress import Progress
from mpisec_bench.result import Result, Row, require_place
from mpisec_bench.rounds import Method, measure
from mpisec_bench.schemes import Scheme
from mpisec_bench.table import table
from mpisec_lab.cluster import interrupt_on_terminate
from mpisec_lab.errors import LabError
from mpisec_lab.options import variables


class Benchmark(Protocol):
    """What a module here has that runs a benchmark."""

    PLAIN_INSIDE: bool  # its jobs under MPIsec time plain MPI as well

    def shape(self, arguments: argparse.Namespace) -> tuple[int, int]: ...
    def title(self, arguments: argparse.Namespace) -> str: ...
    def cases(self, arguments: argparse.Namespace) -> Sequence[Any]: ...
    @property
    def run(self) -> Callable[[Jobs, argparse.Namespace, Scheme, Sequence[Any], dict[str, str]], Iterator[list[Row]]]: ...


_BENCHMARKS = {"pingpong": pingpong, "mbw": mbw, "partitioned": partitioned, "rma": rma, "io": io, "kernels": kernels, "startup": startup, "external": external}


def _module(name: str) -> Benchmark:
    """What runs the benchmark of this name."""
    return _BENCHMARKS.get(name, collective)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mpisec bench")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in (*_BENCHMARKS, *algorithms()):
        module = _BENCHMARKS.get(name, collective)
        about = module.__doc__ or ""
        command = commands.add_parser(name, help=about.splitlines()[0], description=about)
        _BENCHMARKS[name].add_arguments(command) if name in _BENCHMARKS else collective.adder(name)(command)
        add_common_arguments(command)
    alone = commands.add_parser("owncost", help=owncost.__doc__, description=owncost.__doc__)
    alone.add_argument("--mpi", default="mpich-5", help="the lab's, as for mpisec lab run (mpich-5)")
    alone.add_argument("--aead", default="auto", help="MPISEC_AEAD, as boringssl:aes-128-gcm (auto)")
    alone.add_argument("--json", action="store_true", help="print JSON instead of a table")
    openssl = commands.add_parser("provider", help=(provider.__doc__ or "").splitlines()[0], description=provider.__doc__)
    provider.add_arguments(openssl)
    traced = commands.add_parser("timeline", help=timeline.__doc__, description=timeline.__doc__)
    timeline.add_arguments(traced)
    whole = commands.add_parser("all", help=everything.__doc__.splitlines()[0], description=everything.__doc__)
    everything.add_arguments(whole)
    return parser


def _jobs(arguments: argparse.Namespace) -> Jobs:
    if not arguments.launch:
        return LabJobs(arguments.mpi, rate=arguments.rate, pin=not arguments.no_pin)
    launch: dict[str, str] = {}
    for item in arguments.launch:
        name, equals, command = item.partition("=")
        launch |= {name: command} if equals and name in schemes.OVERLAYS else {"": item}
    if "" not in launch:
        raise LabError("--launch lacks the command for plain and sealed jobs: --launch 'mpiexec -n {ranks}'")
    return LaunchedJobs(launch, arguments.mpicc)


def _require_sense(arguments: argparse.Namespace, nodes: int, ranks: int) -> None:
    """Raises LabError for options that do not go together, before anything is made."""
    if ranks < nodes:
        raise LabError(f"{ranks} ranks cannot be on {nodes} nodes: give more --ranks, or fewer --nodes")
    if arguments.launch and (arguments.rate or arguments.no_pin):
        raise LabError("--rate and --no-pin are for the lab's nodes, and --launch takes others: leave one of them out")
    if arguments.output:
        require_place(arguments.output)
    elif arguments.resume:
        raise LabError("--resume goes on with the result in a file: --output names it")


def _run(words: Sequence[str]) -> tuple[argparse.Namespace, Result]:
    """Runs one benchmark, as its command line says; returns (arguments, Result), complete or not."""
    arguments = _parser().parse_args(words)
    module = _module(arguments.command)
    compared = schemes.parse(arguments.schemes)
    if module.PLAIN_INSIDE and not arguments.apart:
        compared = tuple(replace(scheme, times_plain=scheme.sealed) for scheme in compared)
    if not any(scheme.times_plain for scheme in compared):
        compared = (schemes.PLAIN, *compared)
    environment = {"MPISEC_AEAD": arguments.aead} | variables("--env", arguments.env)
    cases, shape = module.cases(arguments), module.shape(arguments)
    _require_sense(arguments, *shape)
    jobs = _jobs(arguments)
    try:
        command = f"mpisec bench {shlex.join(_without_files(words))}"
        link = f", {arguments.rate / 1e9:g} Gbit/s" if arguments.rate else ""
        result = Result(arguments.command, module.title(arguments) + link, command, conditions(arguments, jobs, shape, compared), arguments.output)
        if arguments.resume:
            result.resume()
        def jobs_of(scheme: Scheme) -> Callable[[Sequence[Any]], Iterator[list[Row]]]:
            return lambda cases_: module.run(jobs, arguments, scheme, cases_, environment)

        contestants = {scheme: jobs_of(scheme) for scheme in compared}
        try:
            measure(result, contestants, cases, Method(arguments.rounds, arguments.seconds),
                    functools.partial(Progress, result.head["title"]))
        except KeyboardInterrupt:
            result.write()
        return arguments, result
    finally:
        jobs.close()


def _without_files(words: Sequence[str]) -> list[str]:
    """The words without --output and --resume: where a result goes is not part of what was measured."""
    kept, skip = [], False
    for word in words:
        if skip or word in ("--resume", "--json"):
            skip = False
        elif word in ("-o", "--output"):
            skip = True
        elif not word.startswith("--output="):
            kept.append(word)
    return kept


def _one(words: Sequence[str]) -> bool:
    arguments, result = _run(words)
    document = result.document()
    print(json.dumps(document, indent=1) if arguments.json else table(document), flush=True)
    if not result.complete:
        kept = f" and is in {arguments.output}; --resume goes on" if arguments.output else ""
        print(f"mpisec bench: interrupted; what whole rounds measured is above{kept}", file=sys.stderr)
    return result.complete


def _own_cost(arguments: argparse.Namespace) -> bool:
    jobs = LabJobs(arguments.mpi)
    try:
        rows = owncost.measure(arguments.mpi, jobs, {"MPISEC_AEAD": arguments.aead})
    finally:
        jobs.close()
    print(json.dumps(rows, indent=1) if arguments.json else owncost.table(rows))
    return True


def main() -> int:
    """Returns the exit status: 130 when interrupted."""
    interrupt_on_terminate()
    arguments = _parser().parse_args()
    if arguments.command == "owncost":
        complete = _own_cost(arguments)
    elif arguments.command == "provider":
        complete = provider.run(arguments, f"mpisec bench {shlex.join(_without_files(sys.argv[1:]))}")
    elif arguments.command == "timeline":
        complete = timeline.show(arguments)
    elif arguments.command == "all":
        complete = everything.measure(arguments, _one)
    else:
        complete = _one(sys.argv[1:])
    return 0 if complete else 130


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LabError, OSError) as error:
        sys.exit(f"mpisec bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
