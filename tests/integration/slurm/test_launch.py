"""Every way to start a job under Slurm, with each MPI: the marker is on the wire plain, and not once sealed."""

import re

import pytest
from slurm_jobs import PMI, script, wait_for

RIGHT = re.compile(r"right (\d+) of (\d+), ranks (\d+), nodes (\d+)")


def outcome(text):
    """(ranks, nodes) of each job that says that everything arrived right."""
    found = [tuple(map(int, match)) for match in RIGHT.findall(text)]
    assert all(right == of for right, of, _, _ in found), text
    return [(ranks, nodes) for _, _, ranks, nodes in found]


def ranks_of(mpi):
    """MPICH 4.0 hangs in MPI_Finalize with two ranks on each of two nodes, with or without MPIsec, about every second time (docs/lab.md)."""
    return 2 if mpi == "mpich-4" else 4


@pytest.mark.parametrize("mpi", PMI)
def test_srun(slurm, watched, ring, marker, mpisec, mpi):
    ranks = ranks_of(mpi)
    srun = ["srun", "-N2", f"-n{ranks}", f"--mpi={PMI[mpi]}"]
    plain, seen_plain = watched(slurm(), [*srun, ring(mpi), marker, 100], mpi=mpi)
    sealed, seen_sealed = watched(slurm(), [*srun, mpisec, "exec", ring(mpi), marker, 100], mpi=mpi)
    assert outcome(plain.stdout) == outcome(sealed.stdout) == [(ranks, 2)], plain.stderr + sealed.stderr
    assert (seen_plain, seen_sealed) == (200, 0)  # of each round, two messages cross
    assert slurm().left_over() == []


@pytest.mark.parametrize("mpi, wrong", [("mpich-5", "none"), ("mpich-4", "pmix"), ("openmpi-5", "pmi2"), ("openmpi-5", "none")])
def test_the_wrong_pmi_is_an_error(slurm, ring, marker, mpisec, mpi, wrong):
    """These say nothing else: every process would be a job of its own."""
    ran = slurm().submit(["srun", "-N2", "-n2", f"--mpi={wrong}", mpisec, "exec", ring(mpi), marker, 1], mpi=mpi,
                         env={"MPISEC_KEY_FILE": slurm().key()}, timeout=60)
    assert ran.returncode != 0 and "right" not in ran.stdout
    assert f"srun --mpi={PMI[mpi]}" in ran.stderr, ran.stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5", "openmpi-4"])
def test_salloc_and_mpiexec(slurm, watched, ring, marker, mpisec, mpi):
    options = ["--allow-run-as-root", "--bind-to", "none"] if mpi.startswith("openmpi") else []
    launcher = {"openmpi-4": "mpiexec.openmpi"}.get(mpi, "mpiexec")
    start = ["salloc", "-N2", "-n4", launcher, "-n", 4, *options]
    plain, seen_plain = watched(slurm(), [*start, ring(mpi), marker, 100], mpi=mpi)
    sealed, seen_sealed = watched(slurm(), [*start, mpisec, "exec", ring(mpi), marker, 100], mpi=mpi)
    assert outcome(plain.stdout) == outcome(sealed.stdout) == [(4, 2)], plain.stderr + sealed.stderr
    assert (seen_plain, seen_sealed) == (200, 0)
    assert slurm().left_over() == []


def test_batch_script_and_array(slurm, watched, ring, marker, mpisec, tmp_path):
    batch = script(tmp_path / "job.sh", "#SBATCH -N2 -n2 --array=1-3", f"#SBATCH -o {tmp_path}/out-%a",
                   f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} $SLURM_ARRAY_TASK_ID")
    ran, seen = watched(slurm(), ["sbatch", "--wait", batch])
    assert ran.returncode == 0, ran.stderr
    for task in (1, 2, 3):
        assert f"right {2 * task} of {2 * task}, ranks 2, nodes 2" in (tmp_path / f"out-{task}").read_text()
    assert seen == 0


def test_uneven_nodes(slurm, watched, ring, marker, mpisec):
    ran, seen = watched(slurm(), ["srun", "-N2", "-n3", "--mpi=pmi2", mpisec, "exec", ring("mpich-5"), marker, 50])
    assert outcome(ran.stdout) == [(3, 2)], ran.stderr
    assert seen == 0


@pytest.mark.parametrize("binding", ["none", "cores", "rank"])
def test_bound_to_cores(slurm, watched, ring, marker, mpisec, binding):
    ran, seen = watched(slurm(), ["srun", "-N2", "-n4", "--mpi=pmi2", f"--cpu-bind=verbose,{binding}", mpisec, "exec", ring("mpich-5"), marker, 50])
    assert outcome(ran.stdout) == [(4, 2)], ran.stderr
    assert "cpu-bind=" in ran.stderr and seen == 0


def test_two_jobs_on_the_same_nodes(slurm, watched, ring, marker, mpisec, tmp_path):
    job = f"srun -N2 -n2 --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} 30 slow"
    both = script(tmp_path / "both.sh", f"{job} & {job} & wait")
    ran, seen = watched(slurm(), ["bash", both])
    assert outcome(ran.stdout) == [(2, 2), (2, 2)], ran.stderr
    assert ran.stdout.index("started", ran.stdout.index("started") + 1) < ran.stdout.index("right"), "they ran at once"
    assert seen == 0


def test_cancelled_in_the_middle(slurm, ring, marker, mpisec, tmp_path):
    """Nothing is left: no process on any of four nodes, no file in their memory."""
    cluster = slurm(4)
    output = tmp_path / "out"
    batch = script(tmp_path / "job.sh", "#SBATCH -N4 -n8", f"#SBATCH -o {output}", f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} 3000 slow")
    before = files_in_memory(cluster)
    job = cluster.submit(["sbatch", "--parsable", batch], env={"MPISEC_KEY_FILE": cluster.key()}).check().stdout.strip()
    wait_for(lambda: output.exists() and "started" in output.read_text())
    cluster.submit(["scancel", job]).check()
    wait_for(lambda: "JobState=CANCELLED" in cluster.submit(["scontrol", "show", "job", job]).stdout)
    assert cluster.left_over(20) == []
    assert files_in_memory(cluster) == before
    assert "right" not in output.read_text()


def test_requeued(slurm, ring, marker, mpisec, tmp_path):
    """It starts again, on the same nodes, with the same key and other keys of the job, and ends well."""
    cluster = slurm(4)
    output = tmp_path / "out"
    batch = script(tmp_path / "job.sh", "#SBATCH -N4 -n8 --requeue --open-mode=append", f"#SBATCH -o {output}", 'echo "restart ${SLURM_RESTART_COUNT:-0}"',
                   f"srun --mpi=pmi2 {mpisec} exec {ring('mpich-5')} {marker} $((SLURM_RESTART_COUNT ? 10 : 3000)) slow")
    before = files_in_memory(cluster)
    job = cluster.submit(["sbatch", "--parsable", batch], env={"MPISEC_KEY_FILE": cluster.key()}).check().stdout.strip()
    wait_for(lambda: output.exists() and "started" in output.read_text())
    cluster.submit(["scontrol", "requeue", job]).check()
    # It is held back a while, so that nodes with a fault are not tried at once.
    wait_for(lambda: "JobState=PENDING" in cluster.submit(["scontrol", "show", "job", job]).stdout)
    cluster.submit(["scontrol", "update", f"jobid={job}", "StartTime=now"]).check()
    wait_for(lambda: "JobState=COMPLETED" in cluster.submit(["scontrol", "show", "job", job]).stdout, 150)
    assert "restart 1" in output.read_text()
    assert outcome(output.read_text()) == [(8, 4)], output.read_text()
    assert cluster.left_over() == []
    assert files_in_memory(cluster) == before


def files_in_memory(cluster):
    """What is in each node's /dev/shm, but for a file that MPICH leaves there when it is killed, with or without MPIsec."""
    listed = [cluster.execute(node, ["ls", "-A", "/dev/shm"], sweep=False).stdout.split() for node in range(cluster.head)]
    return [[name for name in names if not name.startswith("mpich_shm_")] for names in listed]
