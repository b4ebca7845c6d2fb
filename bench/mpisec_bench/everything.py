"""Every benchmark with one command, into a directory of result files, and the report of them.

What an interrupted run has finished is not measured again: the same command with --resume goes on.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mpisec_bench import schemes
from mpisec_bench.conditions import machine
from mpisec_bench.report import needs
from mpisec_bench.result import FORMAT, read
from mpisec_lab import places
from mpisec_lab.errors import LabError

_AES = ("--aead", "auto:aes-128-gcm")  # what IPsec and the papers use
_ALL = ("--schemes", ",".join(("mpisec", *schemes.OVERLAYS)))
_POLITE = ("--mpi", "openmpi-5", "--env", "OMPI_MCA_mpi_yield_when_idle=1")  # where ranks share cores
_SHORT = ("--rounds", "6", "--seconds", "20")
_LONG = ("--rounds", "30", "--seconds", "60")

# name of the file: the words of its command. On the link of 10 Gbit/s MPIsec alone: overlays in user space fill a twentieth of it.
_QUICK = {
    "pingpong": ("pingpong", *_AES, *_ALL, "--sizes", "4,64,2K,16K,256K,1M", "--blocks", "5", *_SHORT),
    "pingpong-10gbit": ("pingpong", *_AES, "--rate", "10gbit", "--sizes", "4,2K,16K,256K,2M", *_SHORT),
    "mbw-10gbit": ("mbw", *_AES, "--rate", "10gbit", "--pairs", "2", *_SHORT),
    "partitioned": ("partitioned", *_AES, *_SHORT),
    "rma": ("rma", *_AES, *_SHORT),
    "io": ("io", *_AES, "--blocks", "3", *_SHORT),
    "allgather-4x2": ("allgather", *_AES, *_ALL, "--nodes", "4", "--ranks", "8", "--sizes", "4,16K,256K", "--blocks", "2", *_POLITE, *_SHORT),
    "allgather-algorithms": ("allgather", *_AES, "--sizes", "64,16K,256K", "--algorithms", "auto,naive,o-ring,hs1,hs2,pipeline", *_POLITE, *_SHORT),
    "bcast": ("bcast", *_AES, "--sizes", "4,16K,1M", *_POLITE, *_SHORT),
    "allreduce": ("allreduce", *_AES, "--sizes", "8,16K,1M", *_POLITE, *_SHORT),
    "alltoall": ("alltoall", *_AES, "--sizes", "4,16K,256K", *_POLITE, *_SHORT),
    "kernels-S": ("kernels", *_AES, "--schemes", "mpisec,wireguard,vxlan+ipsec", "--kernels", "mg", *_SHORT),
    "kernels-S-10gbit": ("kernels", *_AES, "--rate", "10gbit", "--nodes", "4", "--ranks", "4", *_POLITE, *_SHORT),
    "startup": ("startup", *_SHORT),
}
_SIZES = "1,4,16,64,256,1K,4K,16K,64K,256K,1M,2M,4M"
_FULL = {
    "pingpong": ("pingpong", *_AES, *_ALL, "--sizes", _SIZES, *_LONG),
    "pingpong-aes-256": ("pingpong", "--aead", "auto:aes-256-gcm", "--sizes", _SIZES, *_LONG),
    "pingpong-aegis": ("pingpong", "--aead", "aegis:aegis-128x4", "--sizes", _SIZES, *_LONG),
    "pingpong-10gbit": ("pingpong", *_AES, "--rate", "10gbit", "--sizes", _SIZES, *_LONG),
    "pingpong-same-node": ("pingpong", *_AES, "--same-node", "--no-pin", "--sizes", "1,1K,64K,1M", *_LONG),
    "mbw-10gbit": ("mbw", *_AES, "--rate", "10gbit", "--no-pin", *_LONG),
    "mbw": ("mbw", *_AES, *_ALL, "--no-pin", *_LONG),
    "partitioned": ("partitioned", *_AES, "--sizes", "1K,64K,1M", *_LONG),
    "partitioned-10gbit": ("partitioned", *_AES, "--rate", "10gbit", "--sizes", "1K,64K,1M", *_LONG),
    "rma": ("rma", *_AES, *_LONG),
    "rma-10gbit": ("rma", *_AES, "--rate", "10gbit", *_LONG),
    "io": ("io", *_AES, *_LONG),
    "io-10gbit": ("io", *_AES, "--rate", "10gbit", *_LONG),
    "allgather-4x2": ("allgather", *_AES, *_ALL, "--nodes", "4", "--ranks", "8", "--sizes", "4,64,2K,16K,256K,1M", *_POLITE, *_LONG),
    "allgather-4x2-mpich": ("allgather", *_AES, *_ALL, "--nodes", "4", "--ranks", "8", "--sizes", "4,2K,256K", "--blocks", "2", *_LONG),
    "allgather-algorithms": ("allgather", *_AES, "--sizes", "64,1K,16K,256K,1M", "--algorithms",
                             "auto,naive,o-ring,o-rd,o-rd2,c-ring,c-rd,hs1,hs2,hsc,pipeline", *_POLITE, *_LONG),
} | {
    name: (name, *_AES, "--sizes", "8,1K,16K,256K,1M", *_POLITE, *_LONG)
    for name in ("bcast", "allreduce", "alltoall", "gather", "scatter", "reduce", "reduce_scatter", "scan", "neighbor_alltoall")
} | {
    "kernels-S": ("kernels", *_AES, *_ALL, *_LONG),
    "kernels-W": ("kernels", *_AES, "--class", "W", *_LONG),
    "kernels-A-10gbit": ("kernels", *_AES, "--class", "A", "--rate", "10gbit", "--nodes", "4", "--ranks", "4", *_POLITE, *_LONG),
    "kernels-A-10gbit-mpich": ("kernels", *_AES, "--class", "A", "--rate", "10gbit", "--nodes", "4", "--ranks", "4", *_LONG),
    "startup": ("startup", "--rounds", "12"),
}
_PROFILES = {"quick": _QUICK, "full": _FULL}
# Measured by the program itself; on the report's page a GPU stands among the crypto libraries.
_IN_THIS_PROCESS = {"crypto": "The crypto libraries", "gpu": "AES on a GPU"}
_CRYPTO = ("crypto", "--ciphers", "aes-128-gcm,aes-256-gcm,aegis-128x4", "--sizes", "64,256,1K,4K,16K,64K,256K,1M,4M", "--threads", "1,2")


_ENGINE = ("engine", "--aead", "auto:aes-128-gcm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `mpisec bench all`."""
    profile = parser.add_mutually_exclusive_group()
    profile.add_argument("--quick", dest="profile", action="store_const", const="quick", help="under ten minutes on two cores (this unless --full)")
    profile.add_argument("--full", dest="profile", action="store_const", const="full", help="more sizes, rounds and kernels: an hour")
    parser.add_argument("-o", "--output", default="mpisec-results", metavar="DIRECTORY", help="(mpisec-results)")
    parser.add_argument("--only", help="these files only, by commas, as pingpong,kernels-S; gpu is measured only when it is named here")
    parser.add_argument("--resume", action="store_true", help="keep what is complete there, go on with the rest")
    parser.set_defaults(profile="quick")


def measure(arguments: argparse.Namespace, run: Callable[[Sequence[str]], bool]) -> bool:
    """Runs them one after the other; `run` takes the words of one, prints its table and returns whether it is complete, as this does."""
    directory = Path(arguments.output)
    wanted = _wanted(arguments)
    if lacking := needs.missing():
        raise LabError(f"all ends with a report: {lacking}")
    if directory.exists() and any(directory.glob("*.json")) and not arguments.resume:
        raise LabError(f"{directory} holds results: --resume goes on with them, -o takes another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"the directory {directory} cannot be made: {error.strerror}") from error
    begin = time.monotonic()
    for number, (name, words) in enumerate(wanted.items(), start=1):
        file = directory / f"{name}.json"
        print(f"[{number}/{len(wanted)}, after {time.monotonic() - begin:.0f} s] mpisec bench {' '.join(words)}", flush=True)
        if file.exists() and _is_complete(file, words):
            print("measured before", flush=True)
            continue
        if words[0] in _IN_THIS_PROCESS:
            _in_this_process(file, words)
        elif words[0] == "engine":
            _engine(file, words)
        elif not run([*words, "-o", str(file), "--resume"]):
            return False
    report = [sys.executable, "-P", "-m", "mpisec_bench.report", str(directory), "-o", str(directory / "report.html")]
    return subprocess.run(report, check=False).returncode == 0


def _is_complete(file: Path, words: Sequence[str]) -> bool:
    document = read(file)
    if document["command"] != f"mpisec bench {' '.join(words)}":
        raise LabError(f"{file} holds the result of `{document['command']}`: take another directory (-o)")
    return bool(document["complete"])


def _wanted(arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    known = {"crypto": _CRYPTO, "engine": _ENGINE} | _PROFILES[arguments.profile]
    names = arguments.only.split(",") if arguments.only else list(known)
    known["gpu"] = ("gpu",)  # when it is named: most machines have none
    for name in names:
        if name not in known:
            raise LabError(f"--{arguments.profile} has no {name}; it has {', '.join(known)}")
    return {name: known[name] for name in names}


def _in_this_process(file: Path, words: Sequence[str]) -> None:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = subprocess.run([places.find_mpisec(), "bench", *words, "--json"], capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise LabError(told.stderr.strip())
    document = {"format": FORMAT, "benchmark": "crypto", "title": _IN_THIS_PROCESS[words[0]], "command": f"mpisec bench {' '.join(words)}",
                "complete": True, "started": started, "conditions": machine(), "rows": json.loads(told.stdout)}
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _engine(file: Path, words: Sequence[str]) -> None:
    told = subprocess.run([places.find_mpisec(), "bench", *words, "-o", str(file)], stderr=subprocess.PIPE, text=True, check=False)
    if told.returncode != 0:
        raise LabError(told.stderr.strip())
