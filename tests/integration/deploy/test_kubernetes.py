"""deploy/kubernetes against the MPI Operator's own definition of a job, and what it must not ask for. The operator's definition, kubeconform and
kustomize come as Go modules: `make test-all`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
TOOLS = TOP / ".deps/kubernetes"

pytestmark = pytest.mark.slow


def judge(*files):
    return subprocess.run([sys.executable, TOP / "tools/manifests.py", *files], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def judged():
    """What `make manifests` says; it fetches its tools where they are not there."""
    done = judge()
    if not (TOOLS / "fetched").exists():
        (pytest.fail if os.environ.get("MPISEC_LAB_REQUIRED") == "1" else pytest.skip)(done.stderr[-2000:])
    return done


@pytest.fixture(params=["base", "openmpi"])
def job(request, judged):
    """The text of a job, as `kubectl apply -k` sends it."""
    made = subprocess.run([TOOLS / "bin/kustomize", "build", TOP / "deploy/kubernetes" / request.param], capture_output=True, text=True, check=True)
    return made.stdout


def test_the_operator_takes_them(judged):
    assert judged.returncode == 0 and judged.stdout.count("Valid: 1, Invalid: 0") == 2, judged.stdout + judged.stderr


def judge_text(text, tmp_path):
    (tmp_path / "job.yaml").write_text(text)
    return judge(tmp_path / "job.yaml")


@pytest.mark.parametrize(("right", "wrong"), [("slotsPerWorker", "slotsPerWorkers"), ("runAsNonRoot", "runAsNonroot")])
def test_a_misspelt_field_is_found(job, tmp_path, right, wrong):
    assert judge_text(job, tmp_path).returncode == 0
    judged = judge_text(job.replace(right, wrong), tmp_path)
    assert judged.returncode != 0 and wrong in judged.stdout, judged.stdout + judged.stderr


def test_it_asks_for_no_privileges(job):
    replicas = yaml.safe_load(job)["spec"]["mpiReplicaSpecs"]
    for name in ("Launcher", "Worker"):
        pod = replicas[name]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] and pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"] + pod.get("initContainers", []):
            assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
            assert "env" not in container, "what a launcher is given in the environment crosses the network in clear"


def test_only_workers_hold_the_key(job):
    replicas = yaml.safe_load(job)["spec"]["mpiReplicaSpecs"]
    assert "mpisec-key" not in str(replicas["Launcher"]) and "mpisec-key" in str(replicas["Worker"])
    assert replicas["Launcher"]["template"]["spec"]["containers"][0]["args"][3:5] == ["mpisec", "exec"]
