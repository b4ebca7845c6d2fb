"""MPI calls on a GPU's memory, which the fake driver (tests/unit/gpu/fake_driver.cpp) makes of the host's: whoever touches it but the driver
faults. Where there is a GPU, on its memory too."""

import hashlib
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = [HERE / "device.c", HERE / "collectives.c", HERE / "windows.c", HERE.parent / "mpi" / "harness.c"]


def digest():
    """Of everything that a program here is made of: compile_mpi looks at the main file only."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted([*HERE.glob("*.[ch]"), *SOURCES]))).hexdigest()[:8]


@pytest.fixture(scope="session")
def program(compile_mpi):
    """program(mpi): pointers.c."""
    flags = ["-std=gnu11", "-O2", "-Wextra", f"-DSOURCES={digest()}", *map(str, SOURCES), "-lm", "-ldl"]
    return lambda mpi: compile_mpi(HERE / "pointers.c", mpi, flags=flags)


@pytest.mark.parametrize(("mpi", "when"), [("mpich-5", "late"), ("openmpi-5", "early")])
def test_every_call_arrives_or_is_refused(program, run, driver, mpi, when):
    """Sent from and received into a GPU's memory, in every mode and collective, within a node and across nodes."""
    result = run([program(mpi), driver, when], nodes=2, ranks=4, mpi=mpi, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("all of a GPU's memory arrived") == 4


@pytest.mark.slow
@pytest.mark.parametrize(("mpi", "when"), [("mpich-5", "early"), ("openmpi-5", "late"), ("openmpi-4", "late"), ("impi", "late"), ("mpich-4", "late")])
def test_every_call_arrives_with_other_libraries(program, run, driver, mpi, when):
    test_every_call_arrives_or_is_refused(program, run, driver, mpi, when)


def test_memory_that_cannot_be_pinned_is_copied_all_the_same(program, run, fake_driver):
    """Through the two buffers that are pinned by themselves, as small messages are."""
    result = run([program("mpich-5"), fake_driver, "late"], ranks=4, timeout=120, env={"FAKE_CUDA_FAIL": "cuMemHostRegister_v2"})
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("all of a GPU's memory arrived") == 4


def test_libraries_fault_on_such_memory(program, run, fake_driver):
    """Without MPIsec: else the other tests would show nothing."""
    result = run([program("mpich-5"), fake_driver, "early"], nodes=2, ranks=4, plain=True)
    assert result.returncode != 0
    assert "all of a GPU's memory arrived" not in result.stdout


@pytest.fixture(scope="session")
def pieces(compile_mpi):
    """pieces.c."""
    sources = map(str, (HERE / "device.c", HERE.parent / "mpi" / "harness.c"))
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wextra", f"-DSOURCES={digest()}", *sources, "-lm", "-ldl"]
    return compile_mpi(HERE / "pieces.c", "mpich-5", flags=flags)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_any_piece_of_a_large_message_may_fail(pieces, run, fake_driver, workers):
    """Before anything is sent, or at the receiver: an MPI error. Nothing is copied any more when the call has returned."""
    result = run([pieces, fake_driver, "errors"], env={"MPISEC_WORKERS": workers})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "the CUDA driver could not copy a part of a message" in result.stderr
    assert result.stdout.count("as it should") == 2


def test_a_piece_that_fails_when_earlier_ones_were_sent_ends_the_job(pieces, run, fake_driver):
    """What is sent of a message is sent before all of it has been copied; and nobody takes a part of it for the whole."""
    result = run([pieces, fake_driver, "late"])
    assert result.returncode != 0
    assert "a part of a message could not be copied from a GPU's memory" in result.stderr
    assert "the message went well" not in result.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_nothing_forged_is_copied_to_the_gpu(pieces, run, compile_mpi, fake_driver, workers):
    """Of a message of which a later segment is forged, the GPU has at most what was authentic before that."""
    flags = ["-std=gnu11", "-shared", "-fPIC", "-pthread", "-Wl,--as-needed"]
    adversary = compile_mpi(HERE.parents[1] / "adversary" / "adversary.c", "mpich-5", flags=flags, name="adversary.so")
    env = {"LD_PRELOAD": adversary, "MPISEC_LAB_ATTACK": "flip-segment:8:0", "MPISEC_SEGMENT": "128K", "MPISEC_WORKERS": workers}
    result = run([pieces, fake_driver, "forged"], env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "integrity" in result.stderr
    assert result.stdout.count("as it should") == 2


@pytest.mark.parametrize("procedure", ["cuMemcpyDtoHAsync_v2", "cuMemHostAlloc", "cuStreamCreate"])
def test_a_driver_that_fails_is_an_error(compile_mpi, run, fake_driver, procedure):
    """And nothing is sent."""
    flags = ["-std=gnu11", "-O2", f"-DSOURCES={digest()}", *map(str, (HERE / "device.c", HERE.parent / "mpi" / "harness.c")), "-lm", "-ldl"]
    result = run([compile_mpi(HERE / "failing.c", "mpich-5", flags=flags), fake_driver], env={"FAKE_CUDA_FAIL": procedure})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "the CUDA driver could not" in result.stderr
    assert result.stdout.count("as it should") == 2


def test_pingpong_compares_what_arrived(run, compile_mpi, driver):
    """bench/gpu_pingpong.c: a line for each size, times of all five ways."""
    program = compile_mpi(HERE.parents[2] / "bench" / "gpu_pingpong.c", "mpich-5", flags=["-O2", "-ldl"])
    result = run([program, "--driver", driver, "--sizes", "4096,100001", "--blocks", "2", "--block-us", "500"], nodes=2, ranks=2)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["bytes"] for row in rows] == [4096, 100001]
    assert all(row[f"{way}_us"] > 0 for row in rows for way in ("device", "host", "link", "down", "up"))
