"""mpisec exec: which library it preloads, what it refuses, and that nothing else stays."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)

from mpisec_lab import find_mpi

SOURCE = Path(__file__).with_name("preloaded.c")
LIBRARY = {"mpich": "libmpisec-mpich.so", "abi": "libmpisec-abi.so", "openmpi": "libmpisec-openmpi.so"}
FAMILY = {"mpich-5": "mpich", "mpich-4": "mpich", "mpich-5-abi": "abi", "openmpi-5": "openmpi", "openmpi-4": "openmpi"}
UNDER_HYDRA = {"PMI_RANK": "0", "PMI_SIZE": "1", "HYDI_CONTROL_FD": "9", "MPI_LOCALRANKID": "0"}
UNDER_OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0"}


def loaded(ran):
    return [line.removeprefix("loaded ") for line in ran.stdout.splitlines() if line.startswith("loaded ")]


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def app(compile_mpi):
    return lambda mpi: compile_mpi(SOURCE, mpi)


@pytest.mark.parametrize("mpi", FAMILY)
def test_family_from_the_program(mpisec, app, mpi):
    ran = mpisec("exec", app(mpi), "-n", "--", "--mpi", "x")
    assert loaded(ran) == [LIBRARY[FAMILY[mpi]]], ran.stderr
    assert ran.returncode == 7, "the program's own exit status"
    assert ran.stdout.count("argument ") == 4, "the program's own arguments, untouched"


def test_variables_for_launchers_that_set_them_themselves(mpisec, app):
    asked = mpisec("exec", "--environment", "--", app("mpich-5"), "--help")
    assert (asked.returncode, len(asked.stdout.splitlines())) == (0, 1), asked.stderr
    name, path = asked.stdout.splitlines()[0].split("=")
    assert (name, Path(path).name) == ("LD_PRELOAD", LIBRARY["mpich"])
    asked = mpisec("exec", "--environment", app("openmpi-5"))
    assert [line.split("=")[0] for line in asked.stdout.splitlines()] == ["LD_PRELOAD"]
    assert mpisec("exec", "--environment", "/nonexistent").returncode == 127
    assert mpisec("exec", "--environment", shutil.which("true")).returncode == 126


def test_paths_do_not_follow_the_program(mpisec, tmp_path):
    """It may change its directory before MPI_Init."""
    ran = mpisec("exec", "--mpi", "mpich", "sh", "-c", "cd / && env", env={"MPISEC_KEY_FILE": "a key", "MPISEC_TRACE": "~/t"}, cwd=tmp_path)
    assert f"MPISEC_KEY_FILE={tmp_path}/a key" in ran.stdout.splitlines(), ran.stdout + ran.stderr
    assert "MPISEC_TRACE=~" not in ran.stdout, ran.stdout


def test_exec_of_exec_needs_nothing(mpisec, program, app):
    asked = mpisec("exec", "--environment", program, "exec", app("mpich-5"))
    assert (asked.returncode, asked.stdout) == (0, ""), asked.stderr
    assert loaded(mpisec("exec", program, "exec", app("mpich-5"))) == [LIBRARY["mpich"]]


def test_the_program_decides_not_the_launcher(mpisec, app):
    assert loaded(mpisec("exec", app("openmpi-5"), env=UNDER_HYDRA)) == [LIBRARY["openmpi"]]


def test_family_from_a_library_of_the_program(mpisec, app, tmp_path, compile_mpi):
    """The program itself names no MPI; a library that only its RUNPATH finds does."""
    implementation = find_mpi("openmpi-5")
    if not implementation.available():
        pytest.skip("Open MPI 5 is not here")
    (tmp_path / "solver.c").write_text("#include <mpi.h>\nint solve(void) { int a, b; return MPI_Get_version(&a, &b); }\n")
    (tmp_path / "main.c").write_text('#include <stdlib.h>\nint solve(void);\nint main(int c, char** v) { (void)v;'
                                     ' if (c > 9) return solve(); return system("echo $LD_PRELOAD"); }\n')
    subprocess.run([*implementation.compiler_for("c"), "-shared", "-fPIC", "-o", tmp_path / "libsolver.so", tmp_path / "solver.c",
                    *implementation.link], check=True)
    subprocess.run(["cc", "-o", tmp_path / "main", tmp_path / "main.c", "-L", tmp_path, "-lsolver", "-Wl,-rpath,$ORIGIN",
                    "-Wl,--unresolved-symbols=ignore-in-shared-libs"], check=True)
    ran = mpisec("exec", tmp_path / "main")
    assert ran.stdout.strip().endswith(LIBRARY["openmpi"]), ran.stderr


def test_program_among_the_arguments(mpisec, app):
    ran = mpisec("exec", shutil.which("env"), "A=1", app("mpich-5-abi"))
    assert loaded(ran) == [LIBRARY["abi"]], ran.stderr


@pytest.mark.parametrize("environment, family", [(UNDER_HYDRA, "mpich"), ({"PMI_RANK": "0"}, "mpich"),
                                                 (UNDER_OPEN_MPI, "openmpi")])
def test_script_takes_the_launchers_family(mpisec, tmp_path, environment, family):
    script = executable(tmp_path / "run.sh", "#!/bin/sh\necho $LD_PRELOAD $1\n")
    ran = mpisec("exec", script, "argument", env=environment)
    path, argument = ran.stdout.split()
    assert (Path(path).name, argument) == (LIBRARY[family], "argument"), ran.stderr


@pytest.mark.parametrize("environment, words", [
    ({}, ["no MPI launcher", "--mpi"]),
    ({"PMIX_RANK": "0"}, ["may start any MPI", "--mpi"]),
    ({"SLURM_PROCID": "0", "SLURM_STEP_ID": "1"}, ["srun", "--mpi"]),
    (UNDER_HYDRA | UNDER_OPEN_MPI, ["two launchers", "--mpi"]),
])
def test_doubt_is_an_error(mpisec, tmp_path, environment, words):
    ran = mpisec("exec", executable(tmp_path / "run.sh", "#!/bin/sh\necho ran\n"), env=environment)
    assert (ran.returncode, ran.stdout) == (126, "")
    assert all(word in ran.stderr for word in words), ran.stderr


@pytest.mark.parametrize("how", [("--mpi", "abi"), ("--mpi=abi",), ("--mpi", "abi", "--")])
def test_family_given(mpisec, tmp_path, how):
    script = executable(tmp_path / "run.sh", "#!/bin/sh\necho $LD_PRELOAD $@\n")
    assert mpisec("exec", *how, script, "x").stdout.split()[0].endswith(LIBRARY["abi"])


def test_family_from_the_setting_and_option_first(mpisec, tmp_path):
    script = executable(tmp_path / "run.sh", "#!/bin/sh\necho $LD_PRELOAD\n")
    assert LIBRARY["openmpi"] in mpisec("exec", script, env={"MPISEC_MPI": "openmpi"} | UNDER_HYDRA).stdout
    assert LIBRARY["mpich"] in mpisec("exec", "--mpi", "mpich", script, env={"MPISEC_MPI": "openmpi"}).stdout


def test_shebang_with_env(mpisec, tmp_path):
    script = executable(tmp_path / "solve", f"#!/usr/bin/env -S {sys.executable} -u\nimport os\nprint(os.environ['LD_PRELOAD'])\n")
    assert LIBRARY["openmpi"] in mpisec("exec", script, env=UNDER_OPEN_MPI).stdout


@pytest.mark.parametrize("mpi", ["mpich-5", "openmpi-5"])
def test_mpi4py_finds_its_own(mpisec, mpi):
    """No launcher: the library beside the interpreter decides, as it does for mpi4py."""
    implementation = find_mpi(mpi)
    if not implementation.available():
        pytest.skip(f"{mpi} is not here")
    print_preload = "import os; print(os.environ['LD_PRELOAD'])"
    assert LIBRARY[FAMILY[mpi]] in mpisec("exec", implementation.python, "-c", print_preload).stdout
    other = find_mpi("openmpi-5" if mpi == "mpich-5" else "mpich-5")
    pinned = {"MPI4PY_LIBMPI": str(other.venv / "lib" / ("libmpi.so.40" if mpi == "mpich-5" else "libmpi.so.12"))}
    if Path(pinned["MPI4PY_LIBMPI"]).exists():
        ran = mpisec("exec", implementation.python, "-c", print_preload, env=pinned)
        assert LIBRARY[FAMILY[other.name]] in ran.stdout, ran.stderr


@pytest.mark.parametrize("mpi, variable, value, other", [
    ("openmpi-5", "OMPI_MCA_btl_tcp_flags", "send", "put"),
    ("mpich-5", "OMPI_MCA_btl_tcp_flags", None, "put"),
    ("mpich-5", "MPIR_CVAR_CH4_OFI_ENABLE_RMA", "0", "1"),
    ("mpich-5-abi", "MPIR_CVAR_CH4_OFI_ENABLE_RMA", "0", "1"),
    ("openmpi-5", "MPIR_CVAR_CH4_OFI_ENABLE_RMA", None, "1"),
    ("mpich-5", "MPIR_CVAR_CH4_OFI_ENABLE_AM", "0", "1"),
    ("mpich-5", "MPIR_CVAR_CH4_NETMOD", "ofi", "ucx"),
    ("mpich-5", "FI_TCP_MAX_SAVED", "1024", "100"),
    ("mpich-5-abi", "FI_TCP_MAX_SAVED", "1024", "100")])
def test_what_the_mpi_library_is_told(mpisec, mpi, variable, value, other):
    """S1: Open MPI's put requests and MPICH's registered windows let an attacker read memory. A setting of the user's stays."""
    for mine, expected in ((None, value), (other, other)):
        ran = mpisec("exec", "--mpi", FAMILY[mpi], "env", env={} if mine is None else {variable: mine})
        set_to = dict(line.split("=", 1) for line in ran.stdout.splitlines() if "=" in line)
        assert set_to.get(variable) == expected, ran.stdout + ran.stderr


@pytest.mark.parametrize("other", ["MPICH_CH4_NETMOD", "MPIR_PARAM_CH4_NETMOD"])
def test_other_names_of_mpichs_variables(mpisec, other):
    """MPICH would take MPIsec's value over one that the user set by an earlier name."""
    ran = mpisec("exec", "--mpi", "mpich", "env", env={other: "ucx"})
    assert "MPIR_CVAR_CH4_NETMOD" not in ran.stdout and f"{other}=ucx" in ran.stdout, ran.stdout


def test_other_preloads_stay_behind_ours(mpisec, tmp_path):
    script = executable(tmp_path / "run.sh", "#!/bin/sh\necho $LD_PRELOAD\n")
    other = str(next(Path("/").glob("lib/*/libm.so.6")))
    first, second = mpisec("exec", "--mpi", "mpich", script, env={"LD_PRELOAD": other}).stdout.strip().split(":")
    assert first.endswith(LIBRARY["mpich"]) and second == other
    again = mpisec("exec", "--mpi", "mpich", script, env={"LD_PRELOAD": f"{first}:{other}"})
    assert again.stdout.strip() == f"{first}:{other}", "not twice"
    wrong = mpisec("exec", "--mpi", "abi", script, env={"LD_PRELOAD": first})
    assert wrong.returncode == 126 and "already has" in wrong.stderr


def test_profiling_tools_come_before_ours(mpisec, app, tmp_path):
    """S1: whose MPI_X call PMPI_X; but not one that hides who makes connections or has PMPI_X of its own, nor other libraries."""
    tool = "int PMPI_Send(void); int MPI_Send(void) { return PMPI_Send(); }\n"
    sources = {"tool": tool, "hiding": tool + "int connect(void) { return -1; }\n", "other": "int other(void) { return 0; }\n",
               "in_place": tool + "int PMPI_Recv(void) { return 0; }\n"}
    for name, source in sources.items():
        (tmp_path / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-w", tmp_path / f"{name}.c", "-o", tmp_path / f"{name}.so"], check=True)
    listed = ":".join(str(tmp_path / f"{name}.so") for name in ("other", "hiding", "in_place", "tool"))
    preload = mpisec("exec", "--environment", app("mpich-5"), env={"LD_PRELOAD": listed}).stdout.strip().removeprefix("LD_PRELOAD=")
    assert [Path(path).name for path in preload.split(":")] == ["tool.so", LIBRARY["mpich"], "other.so", "hiding.so", "in_place.so"]


def test_refuses_what_it_can_not_reach(mpisec, tmp_path):
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    build = ["cc", tmp_path / "main.c", "-o"]
    subprocess.run([*build, tmp_path / "static", "-static"], check=True)
    subprocess.run([*build, tmp_path / "setuid"], check=True)
    (tmp_path / "setuid").chmod(0o755 | stat.S_ISUID)
    subprocess.run([*build, tmp_path / "musl", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], check=True)
    shutil.copy(tmp_path / "static", tmp_path / "foreign")
    with open(tmp_path / "foreign", "r+b") as file:
        file.seek(18)
        file.write((243).to_bytes(2, "little"))  # e_machine: EM_RISCV
    (tmp_path / "cut").write_bytes((tmp_path / "setuid").read_bytes()[:1000])
    (tmp_path / "cut").chmod(0o755)
    for name, words in {"static": "statically linked", "setuid": "set-user-ID", "foreign": "another kind of processor",
                        "cut": "outside of it", "musl": "built for musl"}.items():
        ran = mpisec("exec", "--mpi", "mpich", tmp_path / name)
        assert ran.returncode == 126 and words in ran.stderr, (name, ran)


def test_refuses_a_program_that_contains_its_mpi(mpisec, tmp_path):
    """S1: with libmpich.a and the like linked in, no call gets to a preloaded library. A program with stubs of MPI's calls sends nothing."""
    own = "int PMPI_Init(int *n, char ***words) { return 0; }\n"
    texts = {"mpich": "MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "open-mpi": "ompi_mpi_init: failed"}
    sources = {"symbols": own, **{name: f'#include <stdio.h>\nvoid say(void) {{ puts("{text}"); }}\n' for name, text in texts.items()},
               "stubs": own.replace("PMPI", "MPI")}
    for name, source in sources.items():
        (tmp_path / f"{name}.c").write_text(source + "int main(void) { return 0; }\n")
        subprocess.run(["cc", tmp_path / f"{name}.c", "-o", tmp_path / name, *([] if name in ("symbols", "stubs") else ["-s"])], check=True)
        script = executable(tmp_path / f"{name}.sh", f"#!/bin/sh\n{tmp_path / name}\n")
        for command, status in (([tmp_path / name], 126), (["env", "A=b", tmp_path / name], 126), ([script], 1)):
            ran = mpisec("exec", "--mpi", "mpich", *command)
            refused = f"{tmp_path / name} contains an MPI library" in ran.stderr
            assert (ran.returncode, refused) == ((0, False) if name == "stubs" else (status, True)), (command, ran)


@pytest.mark.parametrize("wrapper", [("env", "A=b"), ("nice", "-n", "1"), ("taskset", "-c", "0"), ("setarch", "x86_64"), ("env", "timeout", "9")])
def test_refuses_the_same_behind_a_wrapper(mpisec, tmp_path, wrapper):
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", tmp_path / "main.c", "-static", "-o", tmp_path / "static"], check=True)
    ran = mpisec("exec", "--mpi", "mpich", *wrapper, tmp_path / "static", "argument")
    assert ran.returncode == 126 and f"{tmp_path / 'static'} is statically linked" in ran.stderr, ran
    assert mpisec("exec", "--mpi", "mpich", *wrapper, shutil.which("true"), tmp_path / "static").returncode == 0, "an argument is no program"


def test_an_options_value_is_no_program(mpisec, tmp_path):
    (tmp_path / "mount").write_bytes(Path("/bin/true").read_bytes())
    (tmp_path / "mount").chmod(0o4755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert mpisec("exec", "--mpi", "mpich", "env", "-u", "mount", shutil.which("true"), env=path).returncode == 0


@pytest.mark.parametrize("name", ["apptainer", "singularity", "podman"])
def test_refuses_to_start_containers(mpisec, tmp_path, name):
    """S1: in a container the loader does not find the library, says so, and runs the program without it. A wrapper script is no way around."""
    shutil.copy("/bin/true", tmp_path / name)
    (tmp_path / "bin").mkdir()
    script = executable(tmp_path / "bin" / name, "#!/bin/sh\ntrue\n")
    for starter in (tmp_path / name, script):
        ran = mpisec("exec", "--mpi", "mpich", starter, "exec", "image.sif", "./app")
        assert ran.returncode == 126 and f"{starter} starts a program in a container" in ran.stderr, ran
        assert "image.sif mpisec exec ./app" in ran.stderr


@pytest.mark.parametrize("wrapper", [("env", "A=b"), ("nice", "-n", "1"), ("taskset", "-c", "0")])
def test_refuses_to_start_containers_behind_a_wrapper(mpisec, tmp_path, wrapper):
    starter = executable(tmp_path / "apptainer", "#!/bin/sh\ntrue\n")
    ran = mpisec("exec", "--mpi", "mpich", *wrapper, starter, "exec", "image.sif", "./app")
    assert ran.returncode == 126 and f"{starter} starts a program in a container" in ran.stderr, ran


@pytest.mark.parametrize("arguments, status, words", [
    ((), 2, "which program"),
    (("--",), 2, "which program"),
    (("--frob", "/bin/true"), 2, "no option --frob"),
    (("--mpi",), 2, "--mpi"),
    (("--mpi", "lam", "/bin/true"), 126, "mpich, abi, openmpi"),
    (("no-such-program",), 127, "on PATH"),
    (("./no-such-program",), 127, "there is no program"),
    (("/tmp",), 126, "is a directory"),
    ((__file__,), 126, "not executable"),
])
def test_wrong_command_lines(mpisec, arguments, status, words):
    ran = mpisec("exec", *arguments)
    assert ran.returncode == status and words in ran.stderr and not ran.stdout, ran


def test_wrong_setting_is_said_before_the_program_starts(mpisec):
    ran = mpisec("exec", "--mpi", "mpich", "/bin/echo", "ran", env={"MPISEC_SEGMNT": "1M"})
    assert ran.returncode == 126 and not ran.stdout and "MPISEC_SEGMNT" in ran.stderr


@pytest.mark.parametrize("environment", [UNDER_HYDRA, UNDER_OPEN_MPI, {"SLURM_PROCID": "0", "SLURM_STEP_ID": "1"}])
def test_under_a_launcher_wrong_settings_are_left_to_mpi_init(mpisec, tmp_path, environment):
    """Other ranks would wait for one that ends before. Only the setting that is needed here is an error here, with the node."""
    script = executable(tmp_path / "run.sh", "#!/bin/sh\necho $LD_PRELOAD\n")
    ran = mpisec("exec", script, env={"MPISEC_FOO": "1", "MPISEC_MPI": "openmpi"} | environment)
    assert ran.returncode == 0 and ran.stdout.strip().endswith(LIBRARY["openmpi"]) and not ran.stderr, ran
    ran = mpisec("exec", script, env={"MPISEC_MPI": "lam"} | environment)
    assert ran.returncode == 126 and not ran.stdout, ran
    assert f"mpisec exec on {socket.gethostname()}: MPISEC_MPI=lam names no MPI family" in ran.stderr


@pytest.mark.parametrize("mpi", FAMILY)
def test_a_wrong_setting_on_one_node_ends_the_job(run, compile_mpi, mpi):
    app = compile_mpi("#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n", mpi)
    for variable, said in (("MPISEC_FOO", "The variable MPISEC_FOO is not a setting of MPIsec"), ("MPISEC_SEGMENT", 'MPISEC_SEGMENT cannot be "1"')):
        result = run([app], mpi=mpi, node_env={1: {variable: "1"}}, timeout=30)
        assert result.returncode not in (0, 124), result
        assert f"rank 1 (node1): {said}" in result.stderr, result.stderr


def test_nothing_stays_in_between(program, app):
    """The program has mpisec's process id, and no child."""
    home = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}
    with subprocess.Popen([str(program), "exec", "--mpi", "mpich", "/bin/sleep", "30"], env=home) as process:
        link = Path(f"/proc/{process.pid}/exe")
        while os.readlink(link).endswith("/mpisec"):
            assert process.poll() is None
        assert os.path.basename(os.readlink(link)) in ("sleep", "coreutils", "busybox")
        process.kill()


def test_help(mpisec):
    ran = mpisec("exec", "--help")
    assert ran.returncode == 0 and "mpiexec -n 64 mpisec exec ./app" in ran.stdout
    assert "Usage: mpisec exec [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n" in ran.stdout


@pytest.fixture
def wrongly_preloaded(program, compile_mpi, tmp_path):
    """(command, environment): a program of Open MPI's with the library for MPICH."""
    source = tmp_path / "calls.c"
    source.write_text("#include <mpi.h>\nint main(int c, char** v) { return MPI_Init(&c, &v); }\n")
    wrong = Path(program).resolve().parent.parent / "lib" / LIBRARY["mpich"]
    return [compile_mpi(source, "openmpi-5")], os.environ | {"LD_PRELOAD": str(wrong)}


def test_what_each_rank_may_say_is_written_at_once(program, wrongly_preloaded):
    """Else the lines of several ranks run into each other: glibc 2.37 and newer cut what fprintf writes to standard error."""
    for command, environment in (wrongly_preloaded, ([program, "exec", "/nowhere/" + 200 * "x"], os.environ)):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # each write is a record
        with ours, theirs:
            ran = subprocess.run(command, env=environment, stderr=theirs, check=False)
            theirs.close()
            said = []
            while record := ours.recv(1 << 16):
                said.append(record)
        assert ran.returncode != 0 and len(said) == 1 and len(said[0]) > 200 and said[0].endswith(b"\n"), said


def test_a_library_of_another_mpi_is_named(wrongly_preloaded):
    """Preloaded by hand for the wrong MPI: the sentence names the MPI library that the program has."""
    command, environment = wrongly_preloaded
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode != 0 and "of another kind (" in ran.stderr and "libmpi.so.40)" in ran.stderr, ran.stderr


@pytest.mark.parametrize("plug_in", [False, True])
@pytest.mark.parametrize(("soname", "family"), [("libmpi.so.12", "MPICH ABI"), ("libmpi.so.40", "Open MPI"), ("libmpi_abi.so.1", "MPI standard ABI"),
                                                ("libother.so.1", None)])
def test_the_mpi_of_a_program_without_its_library_is_named(program, tmp_path, soname, family, plug_in):
    """The library of that name has no MPI in it. A program, or a plug-in that it opens as Python opens its extensions, was built for it."""
    library = tmp_path / soname
    (tmp_path / "empty.c").write_text("int MPI_Init(int* c, char*** v) { return 0; }\n")
    (tmp_path / "calls.c").write_text("int MPI_Init(int*, char***);\nint start(void) { return MPI_Init(0, 0); }\n")
    (tmp_path / "main.c").write_text("int start(void);\nint main(void) { return start(); }\n" if not plug_in else """
        #include <dlfcn.h>
        int main(void) {
            void* extension = dlopen("./extension.so", RTLD_NOW | RTLD_LOCAL);
            return extension ? ((int (*)(void))dlsym(extension, "start"))() : 3;
        }""")
    builds = [["empty.c", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", library]]
    if plug_in:
        builds += [["calls.c", "-shared", "-fPIC", library, "-o", "extension.so"], ["main.c", "-ldl", "-o", "app"]]
    else:
        builds += [["main.c", "calls.c", library, "-o", "app"]]
    for words in builds:
        subprocess.run(["cc", *words], check=True, cwd=tmp_path)
    ours = Path(program).resolve().parent.parent / "lib" / LIBRARY["mpich"]
    ran = subprocess.run(["./app"], cwd=tmp_path, env=os.environ | {"LD_PRELOAD": str(ours), "LD_LIBRARY_PATH": str(tmp_path)}, capture_output=True, text=True,
                         check=False)
    assert ran.returncode == 1, ran
    same = family in ("MPICH ABI", None)
    assert ("this program called MPI, yet no MPI library is loaded" if same else "uses an MPI library of another kind") in ran.stderr
    built = f"{'extension.so' if plug_in else 'app'} was built for {soname} ({family})" if family else "Nothing that is loaded says for which MPI"
    assert built in ran.stderr and "; the library preloaded here protects MPICH ABI programs" in ran.stderr, ran.stderr
