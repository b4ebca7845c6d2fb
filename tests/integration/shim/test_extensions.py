"""Extensions of the libraries that look at requests."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("plain", [False, True], ids=["sealed", "plain"])
def test_a_request_is_complete_when_its_message_has_come(run, compile_mpi, plain):
    """M6: not as soon as the program has a handle, which is the library's own and inactive."""
    app = compile_mpi(Path(__file__).parent / "extensions.c", "mpich-5", flags=["-std=gnu11"])
    result = run([app], nodes=2, ranks=2, mpi="mpich-5", plain=plain, timeout=30)
    assert sorted(result.stdout.split("\n")) == ["", "0: early 0, got it", "1: early 0, got it"], result.stdout + result.stderr
