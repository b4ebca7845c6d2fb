"""The plug-in for Slurm: --mpisec, partitions that are protected, and those that require it. `open` and `sealed` are the lab's partitions."""

import shutil
import subprocess

import pytest
from slurm_jobs import PMI, script

REFUSED = "this partition requires that MPI traffic is protected by MPIsec, and this step is refused"


@pytest.fixture
def site(slurm, plugin, mpisec):
    """site(words): a cluster with the plug-in, whose line in plugstack.conf ends in these."""
    return lambda words="require=sealed": slurm(2, f"required {plugin} mpisec={mpisec} {words}\n")


def srun(mpi, *options, ranks=2):
    return ["srun", "-N2", f"-n{ranks}", f"--mpi={PMI[mpi]}", *options]


@pytest.mark.parametrize("mpi", PMI)
def test_srun_mpisec_seals(site, watched, ring, marker, mpi):
    plain, seen_plain = watched(site(), [*srun(mpi), ring(mpi), marker, 100], mpi=mpi)
    sealed, seen = watched(site(), [*srun(mpi, "--mpisec"), ring(mpi), marker, 100], mpi=mpi)
    assert "right 200 of 200" in plain.stdout and "right 200 of 200" in sealed.stdout, plain.stderr + sealed.stderr
    assert (seen_plain, seen) == (200, 0)


def test_every_job_of_a_partition(site, watched, ring, marker, mpisec, tmp_path):
    """Also from a batch script, also one that says `mpisec exec` itself."""
    batch = script(tmp_path / "job.sh", "#SBATCH -N2 -n2 -p sealed", f"#SBATCH -o {tmp_path}/out", f"srun --mpi=pmi2 {ring('mpich-5')} {marker} 50",
                   f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} 50", f"srun --mpi=pmix {ring('openmpi-5')} {marker} 50", "srun hostname")
    ran, seen = watched(site(), ["sbatch", "--wait", batch], mpi="openmpi-5", env={"FI_PROVIDER": "tcp"})
    text = (tmp_path / "out").read_text()
    assert ran.returncode == 0, text
    assert text.count("right 100 of 100, ranks 2, nodes 2") == 3, text
    assert "node0" in text and "node1" in text, "what is no MPI program runs"
    assert seen == 0


@pytest.mark.parametrize("words", ["protect=open,sealed", "protect=all"])
def test_protected_unless_the_user_says_no(site, watched, ring, marker, words):
    ran, seen = watched(site(words), [*srun("mpich-5"), ring("mpich-5"), marker, 100])
    assert "right 200 of 200" in ran.stdout and seen == 0, ran.stderr
    ran, seen = watched(site(words), [*srun("mpich-5", "--mpisec=off"), ring("mpich-5"), marker, 100])
    assert "right 200 of 200" in ran.stdout and seen == 200, ran.stderr


@pytest.mark.parametrize("case", [
    (["--mpisec=off"], {}, "--mpisec=off is not possible here"),
    ([], {"MPISEC_UNPROTECTED": "allow"}, "MPISEC_UNPROTECTED=allow is not possible here"),
])
def test_refused_where_it_is_required(site, watched, ring, marker, case):
    options, env, reason = case
    ran, seen = watched(site(), [*srun("mpich-5", "-p", "sealed", *options), ring("mpich-5"), marker, 100], env=env)
    assert ran.returncode != 0 and "right" not in ran.stdout and seen == 0
    assert f"{REFUSED}: {reason}" in ran.stderr, ran.stderr


def test_mpiexec_is_refused_where_it_is_required(site, watched, ring, marker):
    ran, seen = watched(site(), ["salloc", "-p", "sealed", "-N2", "-n2", "timeout", 20, "mpiexec", "-n", 2, ring("mpich-5"), marker, 100])
    assert ran.returncode != 0 and "right" not in ran.stdout and seen == 0
    assert f"{REFUSED}: programs that mpiexec starts cannot be seen" in ran.stderr, ran.stderr


def test_a_program_that_cannot_be_protected_is_not_started(site, watched, marker, tmp_path):
    """S1: static, or without a sign of its MPI under a process manager."""
    source = tmp_path / "static.c"
    source.write_text("#include <stdio.h>\nint main(void) { puts(\"ran\"); return 0; }\n")
    program = tmp_path / "static"
    subprocess.run(["cc", "-static", "-o", program, source], check=True)
    for command in ([program], [shutil.which("echo"), "ran"]):
        ran, _ = watched(site(), [*srun("openmpi-5", "-p", "sealed"), *command])
        assert ran.returncode != 0 and "ran" not in ran.stdout.split()
        assert "mpisec exec:" in ran.stderr, ran.stderr


def test_a_key_of_the_jobs(site, watched, ring, marker):
    ran, _ = watched(site("require=sealed key_file=/run/mpisec/%j/key"), ["srun", "-N1", "-p", "sealed", "printenv", "MPISEC_KEY_FILE"])
    assert ran.stdout.strip().endswith("key") and ran.returncode == 0  # the user's own stays
    cluster = site("require=sealed key_file=/run/mpisec/%j/key")
    ran = cluster.submit(["srun", "-N1", "-p", "sealed", "sh", "-c", "echo $SLURM_JOB_ID $MPISEC_KEY_FILE"])
    job, path = ran.stdout.split()
    assert path == f"/run/mpisec/{job}/key"


def test_unknown_option_value_is_refused(site, ring):
    ran = site().submit(["srun", "--mpisec=maybe", "hostname"])
    assert ran.returncode != 0 and "--mpisec=maybe makes no sense" in ran.stderr
