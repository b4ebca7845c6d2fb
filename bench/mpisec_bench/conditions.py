"""What a figure was taken on: goes into every result."""

import os
import platform


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
