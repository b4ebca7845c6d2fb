"""The wheel (`make wheel`, docs/install.md): what is in it and what it asks of a machine; that pip puts it where it works; jobs from it.
Building it takes minutes and PyPI: `make test-all`, or `pytest -m slow tests/integration/wheel`."""

import json
import re
import subprocess
import zipfile
from datetime import datetime
from email.parser import Parser
from pathlib import Path

import pytest
from bare_environment import ask, bare

from mpisec_lab.capture import count, read_streams

HERE = Path(__file__).parent
MARKER = "WHEEL-MARKER-7d1c"
PLUGINS = ("aegis", "boringssl", "ipp", "ipsec-mb", "openssl", "sodium")
SHIMS = ("abi", "mpich", "openmpi")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


@pytest.fixture(scope="module")
def information(unpacked):
    """Its dist-info directory."""
    (found,) = unpacked.glob("*.dist-info")
    return found


@pytest.fixture(scope="module")
def programs(unpacked):
    """All its ELF files by name."""
    files = {file.name: file for file in unpacked.rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"}
    shims = {f"libmpisec-{kind}{name}.so" for kind in ("", "profile-") for name in SHIMS}
    assert set(files) == {"mpisec", *shims, *(f"libmpisec-aead-{name}.so" for name in PLUGINS)}
    return files


# --- what is in it ---


def test_one_small_wheel_for_every_python_and_linux(wheel, information):
    assert wheel.stat().st_size < 25_000_000
    tags = Parser().parsestr((information / "WHEEL").read_text()).get_all("Tag")
    assert tags == ["py3-none-manylinux_2_28_x86_64"] and wheel.name.endswith(f"-{tags[0]}.whl")


def test_no_newer_glibc_and_no_other_library_is_needed(programs):
    for name, file in programs.items():
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", ask(["readelf", "-V", file]))}
        assert versions and max(versions) <= (2, 28), (name, max(versions))
        dynamic = ask(["readelf", "-d", file])
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
        allowed = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
        assert needed - allowed == ({"libcrypto.so.3"} if name == "libmpisec-aead-openssl.so" else set()), (name, needed)
        assert "RPATH" not in dynamic and "RUNPATH" not in dynamic and str(HERE.parents[2]).encode() not in file.read_bytes(), name


def test_only_names_of_its_own_are_shown(programs):
    for name, file in programs.items():
        shown = {line.split()[-1].split("@")[0] for line in ask(["nm", "-D", "--defined-only", file]).splitlines()}
        if "-aead-" in name:
            assert shown == {"mpisec_aead_plugin_table"}, (name, shown)
        elif name != "mpisec":
            assert {"MPI_Send", "PMPI_Send"} < shown and not {other for other in shown if not re.match(r"P?MPIX?_|mpisec_", other)}, name


def test_debug_files_are_apart(wheel, programs):
    for name, file in programs.items():
        assert ".debug_info" not in ask(["readelf", "-SW", file]), name
    archives = list(wheel.parent.glob("*-debug.tar"))
    if archives:  # not where the wheel was given alone
        kept = ask(["tar", "-tf", archives[0]])
        for file in programs.values():
            identity = re.search(r"Build ID: (\w+)", ask(["readelf", "-n", file]))[1]
            assert f".build-id/{identity[:2]}/{identity[2:]}.debug" in kept, file.name


def test_libraries_inside_are_named_with_their_licences(information):
    bill = json.loads((information / "sboms/mpisec.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["name"] == "mpisec"
    parts = {part["name"]: part for part in bill["components"]}
    assert {"boringssl", "libaegis", "ipp-crypto", "intel-ipsec-mb", "libsodium", "openssl", "fmt", "libcxx"} <= set(parts)
    for name, part in parts.items():
        assert part["version"] and part["purl"] and part["licenses"], part
        assert len((information / "licenses" / name).read_text()) > 500, name
    assert (information / "licenses/LICENSE").read_text() == (HERE.parents[2] / "LICENSE").read_text()


# --- installed ---


def test_everything_is_there_and_usable(environment):
    venv = environment("mpich-5")
    said = ask([venv / "bin/mpisec", "info"], env=bare(), cwd="/")
    for shim in SHIMS:
        assert f"{venv}/lib/libmpisec-{shim}.so" in said
    usable = set(re.findall(r"^crypto +(\S+) +(?!cannot)", said, re.MULTILINE))
    assert set(PLUGINS) - {"openssl"} <= usable <= set(PLUGINS), said
    assert "Usage" in ask([venv / "bin/mpisec", "--help"], env=bare())
    assert (venv / "share/man/man1/mpisec.1").exists() and (venv / "include/mpisec/mpisec.h").exists()


def test_commands_in_python_take_the_environments_interpreter(environment):
    """Also where it is not activated: the extras (report, lab) are there and not in the system's Python."""
    venv = environment("mpich-5")
    trap = venv.parent / "trap"
    trap.mkdir(exist_ok=True)
    (trap / "python3").write_text("#!/bin/sh\necho another interpreter\nexit 1\n")
    (trap / "python3").chmod(0o755)
    said = ask([venv / "bin/mpisec", "lab", "list"], env=bare() | {"PATH": f"{trap}:/usr/bin:/bin"}, cwd="/")
    assert "mpich-5" in said


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_a_job_over_two_nodes_is_sealed(lab, environment, tmp_path, mpi):
    """S1: the wheel's own lab runs it, on what pip has installed beside it. Plain shows the marker."""
    venv = environment(mpi)
    seen = {}
    for how in ("--plain", "--timeout=120"):
        capture = tmp_path / "frames.pcap"
        command = [venv / "bin/mpisec", "lab", "run", how, "--nodes", 2, "-n", 4, "--mpi", mpi, "--capture", capture]
        said = ask([*command, "python3", HERE / "marker.py", MARKER[::-1], 500], env=bare() | {"MPISEC_LAB_MPIS": str(venv.parent)}, cwd="/", timeout=300)
        assert "right 1000 of 1000, sum of ranks 6" in said, said
        seen[how] = count(read_streams(capture), MARKER.encode())
    assert seen["--plain"] >= 1000 and seen["--timeout=120"] == 0, seen


def test_a_job_with_the_standard_abi_is_sealed(run, compile_mpi, cluster, environment, tmp_path):
    """S1, with the program of the wheel and the MPI of this tree: mpi4py does not know this ABI."""
    app = compile_mpi(HERE.parent / "lab" / "marker.c", "mpich-5-abi")
    seen = {}
    for plain in (True, False):
        with cluster(2).capture(tmp_path / "frames.pcap") as capture:
            ran = run(app, mpi="mpich-5-abi", plain=plain, mpisec=environment("mpich-5") / "bin/mpisec")
        assert "right 1000 of 1000" in ran.check().stdout
        seen[plain] = count(capture.streams(), b"MARKER")
    assert seen[True] >= 1000 and seen[False] == 0, seen


# --- made again ---


def test_two_builds_are_identical(wheel, information, tmp_path):
    """In another directory, from nothing but what was downloaded."""
    tree = tmp_path / "another" / "place"
    top = HERE.parents[2]
    files = ask(["git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0")
    for name in filter(None, files):
        if (top / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((top / name).read_bytes())
            (tree / name).chmod((top / name).stat().st_mode)
    (tree / ".mpis").symlink_to((top / ".mpis").resolve())
    (tree / ".deps").mkdir()
    for fetched in (top / ".deps").iterdir():  # sources and tools, not what was compiled of them
        if not fetched.name.startswith(("boringssl", "gen-venv")):
            (tree / ".deps" / fetched.name).symlink_to(fetched.resolve())
    made_at = json.loads((information / "sboms/mpisec.cdx.json").read_text())["metadata"]["timestamp"]
    environment = bare() | {"SOURCE_DATE_EPOCH": str(int(datetime.fromisoformat(made_at).timestamp())), "CCACHE_DISABLE": "1"}
    made = subprocess.run([tree / "tools/wheel.sh"], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    (other,) = (tree / "dist").glob("mpisec-*.whl")
    if other.read_bytes() != wheel.read_bytes():
        with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(other) as second:
            differ = [name for name in first.namelist() if name not in second.namelist() or first.read(name) != second.read(name)]
        raise AssertionError(f"these differ: {differ}")
