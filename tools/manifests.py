#!/usr/bin/env python3
"""manifests.py [FILE…]: what kubeconform says of FILE…, or of each directory of deploy/kubernetes as `kubectl apply -k` sends it, against the MPI
Operator's own definition of a job. A misspelt field is an error. The operator's definition, kubeconform and kustomize are Go modules, fetched
once. Needs go and Python's yaml (`make manifests` has it)."""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parent.parent
JOBS = TOP / "deploy/kubernetes"
OPERATOR = "github.com/kubeflow/mpi-operator@v0.6.0"
TOOLS = ("github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0", "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1")


def go(directory: Path, *words: str) -> str:
    environment = os.environ | {"GOPATH": str(directory), "GOFLAGS": "-mod=mod -modcacherw"}
    done = subprocess.run(["go", *words], env=environment, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"manifests.py: go {' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def closed(schema: object) -> object:
    """The schema, in which an object has no fields but those named."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema else {}
    return {name: closed(value) for name, value in schema.items()} | more


def fetch(directory: Path) -> None:
    """Puts programs into directory/bin, and beside it the operator's schema, last."""
    if shutil.which("go") is None:
        sys.exit("manifests.py: go is not installed")
    for tool in TOOLS:
        go(directory, "install", tool)
    (directory / "go.mod").write_text("module schema\n")
    operator = Path(json.loads(go(directory, "mod", "download", "-json", OPERATOR))["Dir"])
    definition = yaml.safe_load((operator / "manifests/base/kubeflow.org_mpijobs.yaml").read_text())
    (version,) = (one for one in definition["spec"]["versions"] if one["name"] == "v2beta1")
    (directory / "mpijob-v2beta1.json").write_text(json.dumps(closed(version["schema"]["openAPIV3Schema"])))
    shutil.rmtree(directory / "pkg")  # what they were compiled from: some hundred megabytes
    (directory / "fetched").write_text(wanted())


def wanted() -> str:
    return "\n".join([OPERATOR, *TOOLS])


def judge(tools: Path, name: str, text: str) -> bool:
    """Prints what kubeconform says."""
    command = [str(tools / "bin/kubeconform"), "-strict", "-verbose", "-summary",
               "-schema-location", f"{tools}/{{{{.ResourceKind}}}}-{{{{.ResourceAPIVersion}}}}.json", "-"]
    print(f"{name}:", flush=True)
    return subprocess.run(command, input=text, text=True, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--tools", type=Path, default=TOP / ".deps/kubernetes", help="where to keep what is fetched (.deps/kubernetes)")
    arguments = parser.parse_args()
    tools: Path = arguments.tools.absolute()
    tools.mkdir(parents=True, exist_ok=True)
    with open(tools / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetched = tools / "fetched"
        if not fetched.exists() or fetched.read_text() != wanted():
            fetch(tools)
    texts = {str(file): file.read_text() for file in arguments.files}
    for job in [] if texts else sorted(JOBS.glob("*/")):
        made = subprocess.run([tools / "bin/kustomize", "build", job], stdout=subprocess.PIPE, text=True, check=True)
        texts[str(job.relative_to(TOP))] = made.stdout
    invalid = [name for name, text in texts.items() if not judge(tools, name, text)]
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
