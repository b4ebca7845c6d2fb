"""deploy/kubernetes against the MPI Operator's own definition of a job, and what it must not ask for. The operator's definition, kubeconform and
kustomize come as Go modules: `make test-all`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
JOBS = TOP / "deploy/kubernetes"
OPERATOR = "github.com/kubeflow/mpi-operator@v0.6.0"
TOOLS = ("github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0", "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1")

pytestmark = pytest.mark.slow


def go(path, *words, cwd):
    environment = os.environ | {"GOPATH": str(path), "GOFLAGS": "-mod=mod -modcacherw"}
    done = subprocess.run(["go", *words], env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        (pytest.fail if os.environ.get("MPISEC_LAB_REQUIRED") == "1" else pytest.skip)(f"go {' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


def closed(schema):
    """The schema, in which an object has no fields but those named: a misspelt one is an error."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema else {}
    return {name: closed(value) for name, value in schema.items()} | more


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The directory of the programs and of the operator's schema."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    path = tmp_path_factory.mktemp("go")
    for tool in TOOLS:
        go(path, "install", tool, cwd=path)
    (path / "go.mod").write_text("module schema\n")
    operator = Path(json.loads(go(path, "mod", "download", "-json", OPERATOR, cwd=path))["Dir"])
    definition = yaml.safe_load((operator / "manifests/base/kubeflow.org_mpijobs.yaml").read_text())
    (version,) = (one for one in definition["spec"]["versions"] if one["name"] == "v2beta1")
    (path / "mpijob-v2beta1.json").write_text(json.dumps(closed(version["schema"]["openAPIV3Schema"])))
    return path


@pytest.fixture(params=["base", "openmpi"])
def job(request, tools):
    """The text of a job, as `kubectl apply -k` sends it."""
    made = subprocess.run([tools / "bin/kustomize", "build", JOBS / request.param], capture_output=True, text=True, check=True)
    return made.stdout


def judge(tools, text):
    command = [tools / "bin/kubeconform", "-strict", "-summary", "-schema-location", f"{tools}/{{{{.ResourceKind}}}}-{{{{.ResourceAPIVersion}}}}.json", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_the_operator_takes_it(tools, job):
    judged = judge(tools, job)
    assert judged.returncode == 0 and "Valid: 1, Invalid: 0" in judged.stdout, judged.stdout + judged.stderr


def test_a_misspelt_field_is_found(tools, job):
    assert judge(tools, job.replace("slotsPerWorker", "slotsPerWorkers")).returncode != 0
    assert judge(tools, job.replace("runAsNonRoot", "runAsNonroot")).returncode != 0


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
