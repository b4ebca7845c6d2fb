import pytest
from mpi_programs import YIELD, build_rules, run_rules
@pytest.mark.parametrize("mpi", ["openmpi-5", "mpich-5"])
@pytest.mark.parametrize("plain", [True, False])
def test_files(run, compile_mpi, mpi, plain):
    found = run_rules(run, build_rules(compile_mpi, mpi), ["files"], nodes=2, ranks=4, mpi=mpi, plain=plain, timeout=200, env=YIELD)
    assert not {k: v for k, v in found.items() if v}, found
