"""What MPIsec adds to the resident memory of a rank (docs/performance.md)."""

from pathlib import Path

import pytest

MOST_KIB = 3 * 1024


def resident(result):
    """{moment: KiB of the rank that has most}."""
    assert result.returncode == 0, result.stderr
    return {when: int(kib) for when, kib in (line.split() for line in result.stdout.splitlines() if line.startswith(("start ", "messages ")))}


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_rank_has_little_more_memory_than_plain(run, compile_mpi, mpi):
    """After MPI_Init, and after messages and collectives."""
    program = compile_mpi(Path(__file__).with_name("resident.c"), mpi)
    job = {"nodes": 2, "ranks": 4, "mpi": mpi}
    run([program], **job)  # a machine's first job measures all crypto libraries, and its leaders keep them
    added = []
    for _ in range(3):  # once more, because which pages of libraries the kernel maps at once varies with what else it does
        plain, sealed = resident(run([program], plain=True, **job)), resident(run([program], **job))
        added.append({when: sealed[when] - plain[when] for when in ("start", "messages")})
        print(f"{mpi}: plain {plain}, sealed {sealed} KiB")
        if max(added[-1].values()) <= MOST_KIB:
            return
    pytest.fail(f"added, KiB: {added}")
