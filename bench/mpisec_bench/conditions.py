"""What a figure was taken on: goes into every result."""

import argparse
import os
import platform

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def conditions(arguments, nodes, ranks):
    """Machine, MPI, link and settings as a dict; `arguments` are the command's (mpi, rate, aead)."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "unknown")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "mpi": arguments.mpi,
        "nodes": nodes,
        "ranks": ranks,
        "rate_bits_per_second": arguments.rate,
        "aead": arguments.aead,
    }


def heading(result):
    """The conditions in a line."""
    at = result["conditions"]
    rate = f"{at['rate_bits_per_second'] / 1e9:g} Gbit/s per connection" if at["rate_bits_per_second"] else "unshaped"
    return (
        f"{at['mpi']}, {at['aead']}, {at['nodes']} lab node(s), {at['ranks']} ranks, link {rate}; "
        f"{at['cpu']}, {at['cores']} cores, kernel {at['kernel']}"
    )


def byte_counts(text):
    """The type of --sizes: "16K,1M" -> "16384,1048576", as the programs take it."""
    counts = []
    for item in text.split(","):
        digits, unit = item.rstrip("KMG"), item[len(item.rstrip("KMG")):]
        if not digits.isascii() or not digits.isdigit() or unit not in _UNITS:
            raise argparse.ArgumentTypeError(f"'{item}' is no number of bytes; write 64, 16K or 1M, by commas")
        counts.append(int(digits) * _UNITS[unit])
    return ",".join(map(str, counts))


def add_common_arguments(parser):
    """Options of every benchmark that runs on the lab."""
    from mpisec_lab.pacing import parse_rate

    parser.add_argument("--mpi", default="mpich-5", help="as for mpisec lab run (mpich-5)")
    parser.add_argument("--rate", type=parse_rate, help="link rate of each TCP connection, as 10gbit")
    parser.add_argument("--aead", default="auto", help="MPISEC_AEAD, as boringssl:aes-128-gcm (auto)")
    parser.add_argument("--no-pin", action="store_true", help="do not give nodes cores of their own")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="variable for the ranks")


def rank_environment(arguments):
    """The ranks' variables that these options ask for."""
    return {"MPISEC_AEAD": arguments.aead} | dict(pair.split("=", 1) for pair in arguments.env)
