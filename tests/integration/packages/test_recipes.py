"""Recipes for package managers of HPC sites: the module file, Spack's and conda's, as far as they can be run here."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
VERSION = re.search(r"project\(mpisec VERSION ([\d.]+)", (TOP / "CMakeLists.txt").read_text())[1]


def ask(command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def test_every_recipe_has_this_version():
    assert f"({VERSION}-" in (TOP / "debian/changelog").read_text().splitlines()[0]
    assert f'version: "{VERSION}"' in (TOP / "deploy/conda/recipe.yaml").read_text()
    assert f'version("{VERSION}")' in (TOP / "deploy/spack/packages/mpisec/package.py").read_text()
    assert f"\nversion: {VERSION}\n" in (TOP / "CITATION.cff").read_text()
    assert f"| {VERSION.rpartition('.')[0]} |" in (TOP / "SECURITY.md").read_text(), "is it supported?"


def test_every_component_is_a_package():
    """What an installation is made of (CMakeLists.txt) and what debian/rules packs."""
    texts = [file.read_text() for file in (*TOP.glob("src/**/CMakeLists.txt"), TOP / "CMakeLists.txt")]
    components = {"runtime", *(found for text in texts for found in re.findall(r"\bCOMPONENT (\w+)", text))}
    packed = dict(pair.split(":") for pair in re.search(r"^COMPONENTS = (.*)$", (TOP / "debian/rules").read_text(), re.MULTILINE)[1].split())
    assert set(packed.values()) == components
    assert set(packed) == set(re.findall(r"^Package: (\S+)", (TOP / "debian/control").read_text(), re.MULTILINE))


def test_the_module_file(program_prefix, tmp_path):
    """Real environment-modules, on an installation that was moved."""
    modulecmd = shutil.which("modulecmd") or next((str(p) for p in map(Path, ("/usr/lib/x86_64-linux-gnu/modulecmd.tcl",)) if p.exists()), None)
    if modulecmd is None:
        pytest.skip("environment-modules is not installed: apt-get install environment-modules")
    environment = {"PATH": "/usr/bin:/bin", "MODULEPATH": str(program_prefix / "share/mpisec/modulefiles"), "HOME": str(tmp_path)}
    done = subprocess.run([modulecmd, "sh", "load", "mpisec"], env=environment, capture_output=True, text=True, check=True)
    asked = subprocess.run(["sh", "-c", f"{done.stdout}\ncommand -v mpisec; man -w mpisec; echo $CPATH"], env=environment | {"PATH": "/usr/bin:/bin"},
                           capture_output=True, text=True, check=False)
    assert str(program_prefix / "bin/mpisec") in asked.stdout and str(program_prefix / "include") in asked.stdout, done.stdout + done.stderr + asked.stdout


@pytest.fixture
def program_prefix(tmp_path):
    """An installation of what is built here, moved after it was made."""
    build = TOP / "build/release"
    if not (build / "cmake_install.cmake").exists():
        pytest.skip("build/release is no build tree")
    environment = os.environ | {"DESTDIR": str(tmp_path / "stage")}
    subprocess.run(["cmake", "--install", build, "--prefix", "/opt/mpisec"], env=environment, check=True, stdout=subprocess.DEVNULL)
    assert not Path("/opt/mpisec").exists(), "DESTDIR was ignored"
    return (tmp_path / "stage/opt/mpisec").rename(tmp_path / "moved")


def test_the_spack_recipe():
    """Spack itself is not to be had from a registry: its syntax, and only names that Spack's packages are made of."""
    tree = ast.parse((TOP / "deploy/spack/packages/mpisec/package.py").read_text())
    (recipe,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert recipe.name == "Mpisec" and [base.id for base in recipe.bases] == ["CMakePackage"]
    directives = {"license", "version", "variant", "depends_on", "requires", "conflicts", "generator"}
    for statement in recipe.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            assert statement.value.func.id in directives, ast.dump(statement)
    defines = set(re.findall(r'self\.define\("(\w+)"', ast.unparse(recipe).replace("'", '"')))
    options = "".join(file.read_text() for file in (TOP / "CMakeLists.txt", TOP / "src/spank/CMakeLists.txt", TOP / "src/aead/deps.cmake"))
    assert defines and all(name in options for name in defines), defines


RENDER = """import json, sys
import rattler_build
recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1] + "/recipe.yaml")
(variant,) = recipe.render(rattler_build.VariantConfig.from_file(sys.argv[1] + "/variants.yaml"))
print(json.dumps(variant.recipe.to_dict()))
"""


@pytest.mark.slow
def test_the_conda_recipe(tmp_path):
    """As rattler-build renders it."""
    ask([sys.executable, "-m", "venv", tmp_path / "venv"])
    got = subprocess.run([tmp_path / "venv/bin/pip", "install", "--quiet", "py-rattler-build==0.73.0"], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"py-rattler-build cannot be fetched: {got.stderr[-500:]}")
    rendered = json.loads(ask([tmp_path / "venv/bin/python", "-c", RENDER, TOP / "deploy/conda"]))
    assert rendered["package"] == {"name": "mpisec", "version": VERSION}
    assert "sysroot_linux-64 2.28.*" in rendered["requirements"]["build"]
    script = " ".join(rendered["build"]["script"])
    assert all(name in (TOP / "CMakeLists.txt").read_text() for name in re.findall(r"-D(MPISEC_\w+)=", script)), script


def test_release_notes_are_the_changelogs():
    said = ask([TOP / "tools/release_notes.py", f"v{VERSION}"])
    assert "\n### " in said and "\n## " not in said and "](docs/" not in said
    none = subprocess.run([TOP / "tools/release_notes.py", "9.9.9"], capture_output=True, text=True, check=False)
    assert none.returncode == 1 and "9.9.9" in none.stderr
