"""S1 on real jobs: what cannot be sealed yet is refused between nodes, by name, and works inside a node."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
MPIS = ["mpich-5", "openmpi-5"]


@pytest.fixture(scope="session")
def calls(tmp_path_factory, compile_mpi):
    """A program for this MPI that makes every refused call."""

    def make(mpi):
        from mpisec_lab.mpis import find_mpi

        source = tmp_path_factory.mktemp("calls") / "calls.c"
        python = ROOT / ".deps/gen-venv/bin/python"
        command = [
            python,
            "-B",
            ROOT / "gen/generate.py",
            "calls",
            "--output",
            source,
            "--compiler",
            find_mpi(mpi).compiler[0],
        ]
        subprocess.run(command, check=True)
        return compile_mpi(source, mpi), source.read_text().count('expect("')

    return make


@pytest.mark.parametrize("mpi", MPIS)
def test_everything_that_is_not_protected_is_refused_between_nodes(calls, run, mpi):
    program, count = calls(mpi)
    assert count >= 1
    result = run([program], nodes=2, ranks=2, mpi=mpi)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(f"refused {count} wrong 0") == 2, result.stdout
    assert "MPI_Win_allocate_shared is refused: " in result.stderr


@pytest.mark.parametrize("mpi", MPIS)
def test_guarded_calls_and_the_inside_of_a_node(compile_mpi, run, tmp_path, mpi):
    program = compile_mpi(HERE / "guarded.c", mpi)
    result = run([program, tmp_path / "file", "sessions"], nodes=2, ranks=4, mpi=mpi)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "guarded: all right" in result.stdout


@pytest.mark.parametrize("mpi", MPIS)
def test_allowed_by_the_user_calls_go_through_and_are_said_aloud(compile_mpi, run, mpi):
    program = compile_mpi(
        """
        #include <mpi.h>
        #include <stdio.h>
        int main(int argc, char **argv) {
            MPI_Win win;
            void* memory;
            MPI_Init(&argc, &argv);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            for (int i = 0; i < 3; ++i) MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
            printf("right\\n");
            MPI_Finalize();
            return 0;
        }
        """,
        mpi,
    )
    result = run([program], nodes=2, ranks=2, mpi=mpi, env={"MPISEC_UNPROTECTED": "allow"})
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("right") == 2
    assert result.stderr.count("MPI_Win_allocate_shared goes over the network UNENCRYPTED") == 2, result.stderr
