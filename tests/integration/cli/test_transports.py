"""S1: libraries that carry data past MPI are not sealed, and a program that uses one is told so, before and after it runs."""

import subprocess

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)

WARNING = "is not protected by MPIsec"


def library(directory, name, source="", *links):
    """An empty shared library of this file name."""
    path = directory / name
    code = directory / (name + ".c")
    code.write_text(source or "int stub_of_{}(void) {{ return 1; }}\n".format(name.translate({ord(c): "_" for c in ".-"})))
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-Wl,--no-as-needed", "-o", path, code, *links], check=True)
    return path


def linked(directory, *libraries, code="int main(void) { return 0; }\n"):
    source = directory / "app.c"
    source.write_text(code)
    subprocess.run(["cc", "-Wl,--no-as-needed", "-o", directory / "app", source, *libraries, f"-Wl,-rpath,{directory}",
                    "-Wl,--allow-shlib-undefined"], check=True)
    return directory / "app"


@pytest.mark.parametrize(("name", "title"), [
    ("libnccl.so.2", "NCCL"), ("libnvshmem_host.so.3", "NVSHMEM"), ("liboshmem.so.40", "OpenSHMEM"), ("libsma.so", "OpenSHMEM"),
    ("libgasnet-udp-par.so", "GASNet"), ("libucp.so.0", "UCX"), ("libfabric.so.1", "libfabric"), ("libibverbs.so.1", "InfiniBand verbs")])
def test_linked_library_is_named(mpisec, tmp_path, name, title):
    """S1: mpisec exec warns, in one sentence, of each library that the program is linked with, and doctor notes it."""
    app = linked(tmp_path, library(tmp_path, name))
    ran = mpisec("exec", "--mpi", "mpich", app)
    lines = [line for line in ran.stderr.splitlines() if WARNING in line]
    assert ran.returncode == 0 and len(lines) == 1 and f"{title} ({name})" in lines[0] and str(app) in lines[0], ran.stderr
    assert f"linked with {title} ({name})" in mpisec("doctor", "--mpi", "mpich", "--", app).stdout


def test_library_behind_a_library_and_only_rank_0_says_so(mpisec, tmp_path):
    """S1: a library of the program brings NCCL; rank 0 names that library, other ranks are silent."""
    framework = library(tmp_path, "libframework.so", "", library(tmp_path, "libnccl.so.2"), f"-Wl,-rpath,{tmp_path}")
    app = linked(tmp_path, framework)
    ran = mpisec("exec", "--mpi", "mpich", app)
    assert "libframework.so is linked with NCCL" in ran.stderr
    assert WARNING in mpisec("exec", app, env={"PMI_RANK": "0", "PMI_SIZE": "2"}).stderr
    assert WARNING not in mpisec("exec", app, env={"PMI_RANK": "1", "PMI_SIZE": "2"}).stderr


def test_what_the_mpi_library_uses_is_its_own(mpisec, tmp_path):
    """libmpi on UCX and libfabric is no news; the program's own link to UCX is."""
    under = [library(tmp_path, "libucp.so.0"), library(tmp_path, "libfabric.so.1")]
    mpi = library(tmp_path, "libmpi.so.12", "", *under, f"-Wl,-rpath,{tmp_path}")
    app = linked(tmp_path, mpi)
    assert WARNING not in mpisec("exec", app).stderr
    both = linked(tmp_path, mpi, under[0])
    said = mpisec("exec", both).stderr
    assert "UCX (libucp.so.0)" in said and "libfabric" not in said


def test_gasnet_linked_into_the_program(mpisec, tmp_path):
    """S1: static GASNet has no file of its own; its symbols tell."""
    app = linked(tmp_path, code="int gasnetc_init(void) { return 0; }\nint main(void) { return gasnetc_init(); }\n")
    assert "contains GASNet" in mpisec("exec", "--mpi", "mpich", app).stderr
    plain = linked(tmp_path, code="int gasnet_free(void) { return 0; }\nint main(void) { return gasnet_free(); }\n")
    assert WARNING not in mpisec("exec", "--mpi", "mpich", plain).stderr


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_library_loaded_while_the_job_runs(run, compile_mpi, tmp_path, mpi):
    """S1: what dlopen brings (PyTorch's NCCL) is named at MPI_Finalize, once per node; what MPI loads for itself is not."""
    nccl = library(tmp_path, "libnccl.so.2")
    library(tmp_path, "libucp.so.0")
    source = tmp_path / "loads.c"
    source.write_text('#include <mpi.h>\n#include <dlfcn.h>\n#include <stdio.h>\nint main(int c, char** v) { MPI_Init(&c, &v);'
                      ' if (!dlopen(v[1], RTLD_NOW) || !dlopen(v[2], RTLD_NOW)) puts(dlerror()); MPI_Finalize(); return 0; }\n')
    app = compile_mpi(source, mpi, flags=["-ldl"])
    result = run([app, nccl, tmp_path / "libucp.so.0"], nodes=2, ranks=4, mpi=mpi)
    lines = [line for line in result.stderr.splitlines() if "the program has loaded" in line]
    assert result.returncode == 0 and len(lines) == 2, result.stderr
    assert all("NCCL (libnccl.so.2)" in line and "was not protected by MPIsec" in line for line in lines)
