"""How jobs fail through a fault of the MPI library alone, now and then and without MPIsec too. The fixture `run` runs such a job again."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """mpi: how the names of the lab's MPIs begin that have it. shown_by: of a Result (mpisec_lab.cluster). seen_plain: how."""

    mpi: str
    shown_by: Callable
    seen_plain: str


def _only_launcher_left(result):
    return result.timed_out and bool(result.left_over) and all("/prte" in command for command in result.left_over)


def _lost_while_connecting(result):
    return result.returncode != 0 and any(
        "MPIDI_OFI_dynamic_sendrecv" in said and "OFI poll failed" in said for said in (result.stdout, result.stderr))


def _launcher_killed(result):
    return result.returncode == 141 and not result.stdout  # SIGPIPE


FAULTS = (
    Fault("openmpi", _only_launcher_left, "after MPI_Abort by several ranks its launcher waits for ever, though all ranks have ended (docs/failures.md)"),
    Fault("mpich-5", _lost_while_connecting,
          "two leaders on one node that connect to each other at the same moment lose the first message of MPI_Intercomm_create: once in 3360 times, "
          "eight ranks on one node pairwise (docs/lab.md)"),
    Fault("mpich-5", _launcher_killed, "its launcher dies of SIGPIPE, now and then, when the only rank ends at once: test_status_output_and_timeout_of_a_job"),
)


def fault_of(result, mpi):
    """How the one of these was seen that the job ended by; None where it was none."""
    return next((fault.seen_plain for fault in FAULTS if mpi.startswith(fault.mpi) and fault.shown_by(result)), None)
