"""Another user of the node takes names in /dev/shm that a session's group might use, as far as they follow from what that user can know or
guess. Run by a rank, as root, before MPI is initialized: `squatter.py TAG RANKS`."""

import hashlib
import os
import socket
import struct
import sys

NOBODY = 65534
VARIABLES = ["PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "FLUX_JOB_ID", "PBS_JOBID"]


def identity(path):
    status = os.stat(path)
    return f"{status.st_dev}:{status.st_ino}"


def pmi_server():
    if "PMI_FD" not in os.environ:
        return "-"
    with socket.socket(fileno=os.dup(int(os.environ["PMI_FD"]))) as server:
        process, _, _ = struct.unpack("3i", server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return str(process or "-")


def node_id():
    """As in docs/protocol.md, "Hellos and cards"."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        lines = [file.read().strip(), identity("/dev/shm"), identity("/proc/self/ns/net"), str(os.geteuid())]
    lines += [os.environ.get(name, "-") for name in VARIABLES] + [pmi_server()]
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).digest()[:16]


def names(tag, ranks):
    """With and without a number of the call."""
    members = "".join(f"{rank}," for rank in range(ranks))
    start = hashlib.sha256(b"mpisec session" + node_id() + f"{len(tag)}:{tag}{members}".encode())
    for end in ["", "#0", "#1"]:
        whole = start.copy()
        whole.update(end.encode())
        yield f"/dev/shm/mpisec-session-{whole.hexdigest()[:32]}"


if __name__ == "__main__":
    taken = list(names(sys.argv[1], int(sys.argv[2])))
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    for name in taken:
        os.close(os.open(name, os.O_RDWR | os.O_CREAT, 0o666))
    print(f"squatter: {len(taken)} names taken", flush=True)
