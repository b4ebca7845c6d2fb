"""What MPIsec adds to the resident memory of a rank (docs/performance.md)."""

from pathlib import Path

import pytest

from mpisec_lab.places import find_mpisec

MOST_KIB = 3 * 1024
PAGE = 4096


@pytest.fixture(scope="module")
def mpisec(tmp_path_factory):
    """A copy of the program and its libraries, written page by page. How much of a file is mapped around a page that is touched depends on
    how the file came into the page cache: what was read ahead or written as a large folio is mapped as a whole (Linux 6.18), 2 MiB say."""
    built = find_mpisec().parents[1]
    copy = tmp_path_factory.mktemp("installation")
    for file in (built / "bin/mpisec", *(built / "lib").rglob("*.so")):
        to = copy / file.relative_to(built)
        to.parent.mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        with to.open("wb", buffering=0) as written:
            for at in range(0, len(content), PAGE):
                written.write(content[at : at + PAGE])
        to.chmod(0o755)
    return copy / "bin/mpisec"


def resident(result):
    """{moment: KiB of the rank that has most}."""
    assert result.returncode == 0, result.stderr
    return {when: int(kib) for when, kib in (line.split() for line in result.stdout.splitlines() if line.startswith(("start ", "messages ")))}


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_rank_has_little_more_memory_than_plain(run, compile_mpi, mpisec, mpi):
    """After MPI_Init, and after messages and collectives."""
    program = compile_mpi(Path(__file__).with_name("resident.c"), mpi)
    job = {"nodes": 2, "ranks": 4, "mpi": mpi, "mpisec": mpisec}
    run([program], **job)  # a machine's first job measures all crypto libraries, and its leaders keep them
    added = []
    for _ in range(3):  # once more, because which pages of libraries the kernel maps at once varies with what else it does
        plain, sealed = resident(run([program], plain=True, **job)), resident(run([program], **job))
        added.append({when: sealed[when] - plain[when] for when in ("start", "messages")})
        print(f"{mpi}: plain {plain}, sealed {sealed} KiB")
        if max(added[-1].values()) <= MOST_KIB:
            return
    pytest.fail(f"added, KiB: {added}")
