"""`mpisec lab slurm up|run|down`: a cluster with Slurm that stands until it is taken down.

A *holder* process holds the cluster; `up` starts it. What `run` needs to get in is in a file whose lock the holder holds: with a free lock the
cluster has gone.
"""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypedDict

from mpisec_lab import places
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import ALIASES, MPIS
from mpisec_lab.options import variables
from mpisec_lab.slurm import cluster as slurm

_END_SECONDS = 20


class _State(TypedDict):
    """What the holder writes for `run`."""

    holder: int
    nodes: list[str]
    enter: list[str]  # a command line that runs the shell line that follows on the head
    key: str


def add_arguments(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds `slurm` and its own actions to the lab's command line."""
    parser = actions.add_parser("slurm", help="nodes with Slurm: up, run, down")
    what = parser.add_subparsers(dest="slurm", required=True)
    up = what.add_parser("up", help="start nodes and Slurm's daemons")
    up.add_argument("--nodes", type=int, default=2, help="nodes beside the head, where commands run (2)")
    up.add_argument("--plugstack", default="", metavar="LINE", help="a line of plugstack.conf, as 'required …/mpisec-slurm.so require=sealed'")
    up.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a line of slurm.conf")
    up.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)  # this process is the holder
    run = what.add_parser("run", help="run a command on the head: srun, sbatch, salloc, squeue, …")
    run.add_argument("--mpi", default="mpich-5", help=f"whose variables and mpiexec the command gets: {', '.join([*MPIS, *ALIASES])} (mpich-5)")
    run.add_argument("--env", action="append", default=[], metavar="K=V", help="variable for the command")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND [ARGUMENT …]")
    what.add_parser("down", help="end the daemons and remove the nodes")


def run(options: argparse.Namespace) -> int:
    """Does what the command line says; returns the exit status."""
    if options.slurm == "up":
        return _keep(options) if options.keep else _up(options)
    return _run(options) if options.slurm == "run" else _down()


def _file() -> Path:
    return places.build() / "slurm.json"


def _state() -> _State:
    """Of the cluster that stands. Raises LabError when none does."""
    path = _file()
    try:
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # only gets through when the holder has gone
    except FileNotFoundError:
        pass
    except OSError:
        state: _State = json.loads(path.read_text())
        return state
    raise LabError("no cluster with Slurm stands here: `mpisec lab slurm up`")


def _up(options: argparse.Namespace) -> int:
    slurm.require_packages()
    try:
        standing = _state()
    except LabError:
        pass
    else:
        raise LabError(f"a cluster with Slurm stands already ({', '.join(standing['nodes'])}): `mpisec lab slurm down` ends it")
    words = [word for setting in options.conf for word in ("--conf", setting)]
    with tempfile.TemporaryFile("w+") as errors:  # no pipe of the user's: the daemons would keep it open
        holder = subprocess.Popen(
            [sys.executable, "-P", "-m", "mpisec_lab", "slurm", "up", "--keep", "--nodes", str(options.nodes), f"--plugstack={options.plugstack}", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            text=True,
        )
        said = holder.stdout.readline() if holder.stdout else ""
        if not said:
            status = holder.wait() or 1
            errors.seek(0)
            sys.stderr.write(errors.read())
            return status
    print(said, end="")
    return 0


def _own_settings() -> dict[str, str]:
    """MPIsec's, as users set them in front of a command; not those of the lab itself."""
    return {name: value for name, value in os.environ.items() if name.startswith("MPISEC_") and not name.startswith("MPISEC_LAB_")}


def _keep(options: argparse.Namespace) -> int:
    """The holder: holds the cluster until it is told to end."""
    plugstack = options.plugstack + "\n" if options.plugstack else ""
    settings = variables("--conf", options.conf)
    with slurm.SlurmCluster(options.nodes, settings=settings, plugstack=plugstack) as cluster, open(_file(), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(cluster.way_in() | {"holder": os.getpid()}, file)
        file.flush()
        nodes = ", ".join(cluster.names[:-1])
        print(f"Slurm stands on {nodes}: `mpisec lab slurm run srun -N{options.nodes} hostname`, then `mpisec lab slurm down`", flush=True)
        ends = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # `up` waits for nothing more, and neither does who reads what `up` prints
        os.dup2(null, 2)
        signal.sigwait(ends)
    _file().unlink(missing_ok=True)
    return 0


def _run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise LabError("give the command to run: mpisec lab slurm run srun -N2 -n4 --mpi=pmi2 mpisec exec ./app")
    given = variables("--env", options.env)
    state = _state()
    settings = slurm.variables_for(options.mpi) | {"MPISEC_KEY_FILE": state["key"]} | _own_settings() | given
    words = ["env", *(f"{name}={value}" for name, value in settings.items()), *command]
    line = f"cd {slurm.shell_line([os.getcwd()])} && exec {slurm.shell_line(words)}"
    sys.stdout.flush()
    os.execvp(state["enter"][0], [*state["enter"], line])


def _down() -> int:
    holder = _state()["holder"]
    os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        try:
            _state()
        except LabError:
            return 0
        time.sleep(0.05)
    raise LabError(f"the cluster does not end: process {holder} holds it")
