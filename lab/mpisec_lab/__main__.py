"""The lab's command line: `python3 -m mpisec_lab run|slurm|setup|check-rate|list|clean`, also `mpisec lab …`."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpisec_lab import cluster as clusters
from mpisec_lab import link
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import ALIASES, MPIS, Mpi, find_mpi
from mpisec_lab.options import duration, variables
from mpisec_lab.overlay import OVERLAYS
from mpisec_lab.slurm import command as slurm


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mpisec lab", description="A cluster on one machine: namespaces as nodes."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    run = actions.add_parser("run", help="run an MPI program on the nodes")
    _add_cluster_options(run)
    run.add_argument(
        "-n", "--ranks", type=int, default=2, metavar="RANKS", help="ranks, block-wise over the nodes (2)"
    )
    run.add_argument("--mpi", default="mpich-5", help=f"one of {', '.join([*MPIS, *ALIASES])} (mpich-5)")
    run.add_argument(
        "--rate", help="rate of every node's link, as 10gbit; a raw TCP stream checks it first"
    )
    run.add_argument("--plain", action="store_true", help="without MPIsec")
    run.add_argument("--capture", metavar="FILE.pcap", help="record every frame between nodes")
    run.add_argument(
        "--env", action="append", default=[], metavar="[NODE:]K=V", help="variable for the ranks (of a node)"
    )
    run.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="[NODE:]FILE",
        help="key file (of a node); without it a fresh one",
    )
    run.add_argument(
        "--timeout", type=duration, default=3600, metavar="S", help="seconds until the job is killed (3600)"
    )
    run.add_argument(
        "--launcher",
        action="append",
        default=[],
        metavar="OPTION",
        help="further option for mpiexec, as --launcher=--with-ft --launcher=ulfm",
    )
    run.add_argument("--mpisec", metavar="PATH", help="the mpisec program")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM [ARGUMENT …]")
    rate = actions.add_parser("check-rate", help="measure a raw TCP stream between two nodes")
    _add_cluster_options(rate)
    rate.add_argument("--rate", help="pace it, as 10gbit")
    rate.add_argument("--seconds", type=duration, default=1.0)
    rate.add_argument("--json", action="store_true")
    slurm.add_arguments(actions)
    setup = actions.add_parser("setup", help="install the MPIs")
    setup.add_argument("names", nargs="*", help="MPIs, or demo, or test; all when none is named")
    actions.add_parser("list", help="the MPIs that the lab knows")
    actions.add_parser("clean", help="remove files of labs that were killed")
    return parser.parse_args(arguments)


def _add_cluster_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=2, help="nodes (2)")
    parser.add_argument(
        "--overlay", default="none", help=f"network between the nodes: none, {', '.join(OVERLAYS)} (none)"
    )
    parser.add_argument("--no-pin", action="store_true", help="do not give nodes cores of their own")


@contextlib.contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[clusters.Cluster]:
    with clusters.Cluster(options.nodes, pin=not options.no_pin, overlay=options.overlay) as cluster:
        if cluster.overlay:
            print(f"lab: {cluster.overlay.description}", file=sys.stderr)
        yield cluster


def _per_node(option: str, items: Sequence[str], nodes: int) -> tuple[list[str], dict[int, list[str]]]:
    """['x', '1:y'] → (['x'], {1: ['y']})"""
    everywhere: list[str] = []
    single: dict[int, list[str]] = {}
    for item in items:
        node, colon, rest = item.partition(":")
        if colon and node.isdigit():
            if int(node) >= nodes:
                raise LabError(f"{option} {item}: there is no node {node}; the nodes are 0 to {nodes - 1}")
            single.setdefault(int(node), []).append(rest)
        else:
            everywhere.append(item)
    return everywhere, single


def _with_fitting_python(command: list[str], mpi: Mpi) -> list[str]:
    """`command` with the interpreter whose mpi4py fits `mpi` for a bare python3. Raises LabError for one that fits another MPI."""
    program = command[0]
    if program in ("python", "python3"):
        print(f"lab: {program} is {mpi.python}, whose mpi4py fits {mpi.title}", file=sys.stderr)
        return [str(mpi.python), *command[1:]]
    for other in MPIS.values():
        if Path(program).parent.absolute() == other.python.parent and other.venv != mpi.venv and Path(program).name.startswith("python"):
            raise LabError(
                f"{program} has an mpi4py for {other.title}, and the job is to run {mpi.title}: "
                f"take {mpi.python}, or --mpi {other.name}"
            )
    return command


def _run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise LabError("give the program to run: mpisec lab run --nodes 2 -n 4 ./app")
    command = _with_fitting_python(command, find_mpi(options.mpi))
    if options.plain and options.key:
        raise LabError("--plain runs the job without MPIsec, so --key has no effect: leave one of them out")
    everywhere, single = _per_node("--env", options.env, options.nodes)
    env, node_env = variables("--env", everywhere), {node: variables("--env", items) for node, items in single.items()}
    keys, node_key = _per_node("--key", options.key, options.nodes)
    rate = link.parse_rate(options.rate) if options.rate else None
    with _cluster(options) as cluster:
        if rate:
            from mpisec_lab.rate import check_rate

            print(f"lab: {check_rate(cluster, rate)}", file=sys.stderr)

        def job() -> clusters.Result:
            return cluster.run(
                command,
                ranks=options.ranks,
                mpi=options.mpi,
                plain=options.plain,
                env=env,
                node_env=node_env,
                mpisec=options.mpisec,
                key=Path(keys[-1]).absolute() if keys else None,
                node_key={node: Path(files[-1]).absolute() for node, files in node_key.items()},
                rate=rate,
                launcher=options.launcher,
                timeout=options.timeout,
                stream=True,
            )

        if options.capture:
            with cluster.capture(options.capture) as capture:
                result = job()
            print(f"lab: {options.capture}: {capture.dropped} frames dropped", file=sys.stderr)
        else:
            result = job()
    if result.timed_out:
        print(f"lab: the job was killed after {options.timeout:g} seconds", file=sys.stderr)
    for left in [] if result.timed_out else result.left_over:
        print(f"lab: still ran after the job and was killed: {left}", file=sys.stderr)
    return result.returncode


def _check_rate(options: argparse.Namespace) -> int:
    from mpisec_lab.rate import check_rate

    with _cluster(options) as cluster:
        check = check_rate(
            cluster, link.parse_rate(options.rate) if options.rate else None, options.seconds
        )
    print(json.dumps({"asked": check.asked, "measured": check.measured}) if options.json else check)
    return 0


def _list() -> int:
    for mpi in MPIS.values():
        state = "ready" if mpi.available() else mpi.how_to_install()
        print(f"{mpi.name:12} {mpi.title:40} {state}" + (f"\n{'':13}{mpi.quirks}" if mpi.quirks else ""))
    sys.stdout.flush()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: the job's own, 1 for the lab's errors, 130 after an interrupt."""
    options = _arguments(arguments)
    clusters.interrupt_on_terminate()
    try:
        if options.action == "run":
            return _run(options)
        if options.action == "check-rate":
            return _check_rate(options)
        if options.action == "setup":
            from mpisec_lab.setup import main as setup

            return setup(options.names)
        if options.action == "slurm":
            return slurm.run(options)
        if options.action == "list":
            return _list()
        for directory in clusters.remove_stale():
            print(f"removed {directory}")
        return 0
    except LabError as error:
        print(f"mpisec lab: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # who reads what we print has read enough, as in `mpisec lab list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # what a shell says of a process that SIGPIPE ended
    except KeyboardInterrupt:
        print("mpisec lab: interrupted, the cluster is gone", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
