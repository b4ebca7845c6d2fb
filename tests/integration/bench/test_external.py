"""Others' benchmarks: their output is read; IMB (Intel MPI's own) and OSU's programs (mpi4py's ports) run through mpisec bench."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))

from mpisec_bench import external  # noqa: E402
from mpisec_lab import places  # noqa: E402
from mpisec_lab.errors import LabError  # noqa: E402

_OSU_LATENCY = """
# OSU MPI Latency Test v7.3
# Size          Latency (us)
# Datatype: MPI_CHAR.
1                       7.93
1048576               391.49
"""
_OSU_MBW = """
# OSU MPI Multiple Bandwidth / Message Rate Test v7.3
# [ pairs: 2 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1                       2.50        2500000.00
16384                1000.00          61035.16
"""
_OSU_BARRIER = """
# OSU MPI Barrier Latency Test v7.3
# Avg Latency(us)
             11.38
"""
_IMB = """
#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         7.44         0.00
         1024         1000         7.59       134.87

#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = 2
# ( 2 additional processes waiting in MPI_Barrier)
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1024         1000        10.00        12.00        11.00

#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = 4
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.00         0.00         0.00
         1024         1000        20.00        22.00        21.00

#---------------------------------------------------
# Benchmarking Barrier
# #processes = 4
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000        10.36        10.38        10.37
"""
_NPB = """
 CG Benchmark Completed.
 Class           =                        S
 Size            =                     1400
 Iterations      =                       15
 Time in seconds =                     0.05
 Total processes =                        4
 Verification    =               SUCCESSFUL
"""


def test_osu_output():
    assert external.parse_osu(_OSU_LATENCY, "osu_latency") == [
        {"what": "osu_latency", "bytes": 1, "time_us": 7.93}, {"what": "osu_latency", "bytes": 1048576, "time_us": 391.49}
    ]
    assert external.parse_osu(_OSU_MBW, "osu_mbw_mr")[1] == {"what": "osu_mbw_mr", "bytes": 16384, "time_us": 16.384}
    assert external.parse_osu(_OSU_BARRIER, "osu_barrier") == [{"what": "osu_barrier", "time_us": 11.38}]


def test_imb_output():
    assert external.parse_imb(_IMB, "IMB-MPI1") == [
        {"what": "PingPong", "bytes": 0, "time_us": 7.44}, {"what": "PingPong", "bytes": 1024, "time_us": 7.59},
        {"what": "Allreduce", "bytes": 1024, "time_us": 21.0}, {"what": "Barrier", "time_us": 10.37},
    ]


def test_npb_output():
    assert external.parse_npb(_NPB, "cg.S.x") == [{"what": "CG", "class": "S", "time_us": 50000.0}]
    with pytest.raises(LabError, match="verification"):
        external.parse_npb(_NPB.replace("SUCCESSFUL", "UNSUCCESSFUL"), "cg.S.x")
    with pytest.raises(LabError, match="no result"):
        external.parse_npb("Segmentation fault", "cg.S.x")


def _bench(*words):
    return subprocess.run([str(places.find_mpisec()), "bench", "external", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


def test_a_directory_without_programs_is_refused(tmp_path):
    told = _bench("--suite", "npb", "--dir", tmp_path)
    assert told.returncode != 0 and "holds no program of the NPB suite" in told.stderr


@pytest.mark.slow
def test_imb_runs(lab):
    mpi = places.mpis() / "impi"
    if not (mpi / "bin/IMB-MPI1").exists():
        pytest.skip("Intel MPI is not here")
    told = _bench("--suite", "imb", "--dir", mpi / "bin", "--programs", "IMB-MPI1", "--arguments", "PingPong Allreduce -msglog 10:11 -iter 100",
                  "--mpi", "impi", "--env", f"LD_LIBRARY_PATH={mpi}/lib", "--rounds", 2)
    assert told.returncode == 0, told.stderr
    assert "PingPong       1024 mpisec" in told.stdout and "Allreduce      2048 mpisec" in told.stdout, told.stdout


@pytest.mark.slow
def test_osu_programs_run(lab, tmp_path):
    """mpi4py's source has the OSU programs, rewritten in Python by its author."""
    fetched = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "mpi4py",
                              "mpi4py==4.1.2", "-d", tmp_path], capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"no source of mpi4py: {fetched.stderr[-200:]}")
    with tarfile.open(next(tmp_path.glob("mpi4py*.tar.gz"))) as source:
        source.extractall(tmp_path, [member for member in source if "/demo/osu_" in member.name])
    told = _bench("--suite", "osu", "--dir", tmp_path, "--programs", "osu_barrier.py,osu_allgather.py", "--rounds", 1, "-o", tmp_path / "r.json")
    assert told.returncode == 0, told.stderr
    assert "osu_allgather   1048576 mpisec" in told.stdout and "osu_barrier" in told.stdout, told.stdout
