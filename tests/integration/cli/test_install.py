"""make install: complete, and works from wherever it is moved to."""

import shutil
import subprocess
from pathlib import Path

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)

PRELOADED = Path(__file__).with_name("preloaded.c")


@pytest.fixture(scope="module")
def moved(program, tmp_path_factory):
    """An installation that was moved after it was made."""
    build = program.parent.parent
    if not (build / "cmake_install.cmake").exists():
        pytest.skip(f"{build} is no build tree")
    first = tmp_path_factory.mktemp("first") / "prefix"
    subprocess.run(["cmake", "--install", build, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
    second = tmp_path_factory.mktemp("second") / "elsewhere"
    shutil.move(first, second)
    return second


def test_all_parts_are_there(moved):
    for part in ("bin/mpisec", "lib/libmpisec-mpich.so", "lib/libmpisec-abi.so", "lib/libmpisec-openmpi.so",
                 "lib/libmpisec-profile-mpich.so", "share/bash-completion/completions/mpisec", "share/mpisec/modulefiles/mpisec",
                 "lib/mpisec/libmpisec-aead-openssl.so", "lib/mpisec/libmpisec-marker-b.so", "lib/libmpisec-provider.so", "share/man/man1/mpisec-provider.1",
                 "include/mpisec/mpisec.h", "share/mpisec/lab/mpisec_lab/__main__.py",
                 "share/man/man1/mpisec.1", "share/man/man1/mpisec-bench-pingpong.1"):
        assert (moved / part).exists(), part


def test_info_speaks_of_the_new_place(moved, mpisec):
    ran = mpisec("info", binary=moved / "bin" / "mpisec")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    paths = [word for word in ran.stdout.split() if word.startswith("/")]
    assert len(paths) >= 6 and all(path.startswith(str(moved)) for path in paths), ran.stdout


def test_exec_takes_the_moved_library(moved, mpisec, tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\necho $LD_PRELOAD\n")
    script.chmod(0o755)
    ran = mpisec("exec", "--mpi", "openmpi", script, binary=moved / "bin" / "mpisec")
    assert ran.stdout.strip() == str(moved / "lib" / "libmpisec-openmpi.so"), ran.stderr


def test_a_library_that_the_loader_would_skip_is_an_error(moved, mpisec, tmp_path):
    """ld.so warns about such a library and starts the program without it: unprotected."""
    for name in ("broken", "with space", "with$dollar"):
        shutil.copytree(moved, tmp_path / name, symlinks=True)
    (tmp_path / "broken" / "lib" / "libmpisec-mpich.so").write_bytes(b"\x7fELF, cut off")
    for name, words in {"broken": "install MPIsec again", "with space": "without spaces", "with$dollar": "dollar"}.items():
        ran = mpisec("exec", "--mpi", "mpich", "/bin/echo", "ran", binary=tmp_path / name / "bin" / "mpisec")
        assert (ran.returncode, ran.stdout) == (126, ""), (name, ran)
        assert words in ran.stderr, (name, ran)


def test_a_library_on_a_noexec_mount_is_an_error(moved, mpisec, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(moved, copy)
    script = (f"mount -t tmpfs -o noexec none {copy}/lib && cp -r {moved}/lib/. {copy}/lib && "
              f"exec {copy}/bin/mpisec exec --mpi mpich /bin/echo ran")
    ran = mpisec("-m", "sh", "-c", script, binary=shutil.which("unshare"))
    if "mount:" in ran.stderr or "unshare:" in ran.stderr:
        pytest.skip(f"this machine does not let us mount: {ran.stderr.strip()}")
    assert (ran.returncode, ran.stdout) == (126, "") and "noexec" in ran.stderr, ran


def test_a_job_runs_sealed_from_there(moved, run, compile_mpi):
    app = compile_mpi(Path(__file__).resolve().parents[3] / "demo" / "heat.c", "mpich-5")
    results = [run([app, "64", "64", "5"], mpi="mpich-5", **how) for how in ({"plain": True}, {"mpisec": moved / "bin" / "mpisec"})]
    sums = [result.check().stdout.split("checksum=")[1].split()[0] for result in results]
    assert sums[0] == sums[1]


def test_lab_runs_from_there(moved, mpisec):
    ran = mpisec("lab", "list", binary=moved / "bin" / "mpisec", cwd="/")
    assert ran.returncode == 0 and "mpich-5" in ran.stdout, ran.stderr


def test_commands_in_python_take_the_interpreter_beside_the_program(moved, mpisec, tmp_path):
    """That of a virtual environment, activated or not."""
    copy = tmp_path / "copy"
    shutil.copytree(moved, copy)
    (copy / "bin/python3").write_text("#!/bin/sh\necho beside: $*\n")
    (copy / "bin/python3").chmod(0o755)
    said = mpisec("lab", "list", binary=copy / "bin/mpisec").stdout
    assert said.startswith("beside: -c import sys") and said.endswith(" mpisec_lab list\n")


def test_no_path_of_the_build_is_left(moved, program):
    """Nothing that is looked up at run time leads back to the build tree."""
    build = str(program.parent.parent)
    for file in [moved / "bin" / "mpisec", *moved.glob("lib/*.so"), *moved.glob("lib/mpisec/*.so")]:
        headers = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
        assert build not in headers, file
