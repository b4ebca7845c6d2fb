"""mpisec key, info, doctor, bench and lab; wrong input."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from mpisec_program import mpisec, program  # noqa: F401 (fixtures)

ROOT = Path(__file__).resolve().parents[3]
PRELOADED = Path(__file__).with_name("preloaded.c")
FINGERPRINT = re.compile(r"fingerprint\s+([0-9a-f]{16})\b")


@pytest.fixture
def key(mpisec, tmp_path):
    """A key file, and the settings that lead to it."""
    path = tmp_path / "key"
    assert mpisec("key", "new", path).returncode == 0
    return path


def hex_digits_of(path):
    return path.read_text().split()[1]


def test_key_new_show_check_agree(mpisec, tmp_path):
    made = mpisec("key", "new")
    path = tmp_path / "home" / ".config" / "mpisec" / "key"
    assert made.returncode == 0 and path.stat().st_mode & 0o777 == 0o600, made.stderr
    shown, checked = mpisec("key", "show"), mpisec("key", "check")
    assert str(path) in shown.stdout and "0600" in shown.stdout
    prints = [FINGERPRINT.search(ran.stdout).group(1) for ran in (made, shown, checked)]
    assert len(set(prints)) == 1
    secret = hex_digits_of(path)
    for ran in (made, shown, checked):
        assert secret not in ran.stdout + ran.stderr and secret[:16] not in ran.stdout, "never the key"


def test_key_new_elsewhere_says_how_to_use_it(mpisec, tmp_path):
    """What the advice names works on that key, not on the one of the settings."""
    elsewhere, usual = mpisec("key", "new", tmp_path / "other"), mpisec("key", "new")
    assert f"`MPISEC_KEY_FILE={tmp_path}/other mpisec key share NODES...`" in elsewhere.stdout
    assert f"Jobs use this key where MPISEC_KEY_FILE={tmp_path}/other is set." in elsewhere.stdout
    assert "MPISEC_KEY_FILE" not in usual.stdout


def test_key_new_names_a_command_that_a_shell_understands(mpisec, tmp_path):
    path = tmp_path / "the job's $keys" / "key"
    path.parent.mkdir()
    said = mpisec("key", "new", path).stdout
    assigned = re.search(r"`([^`]*) mpisec key show`", said)[1]
    printed = subprocess.run(["sh", "-c", f"{assigned} sh -c 'printenv MPISEC_KEY_FILE'"], capture_output=True, text=True, check=True)
    assert printed.stdout.rstrip("\n") == str(path)


def test_key_new_never_overwrites(mpisec, key):
    before = key.read_bytes()
    again = mpisec("key", "new", key)
    assert again.returncode == 1 and "not overwritten" in again.stderr
    assert key.read_bytes() == before


def test_key_new_with_a_name_that_is_too_long(mpisec, tmp_path):
    made = mpisec("key", "new", tmp_path / ("n" * 300) / "key")
    assert made.returncode == 1 and "cannot be made: File name too long" in made.stderr


@pytest.mark.parametrize("command", [["provider"], ["algorithms", "--json"]])
def test_standard_output_that_is_full(program, command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([program, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "Not everything could be written" in done.stderr


def test_two_keys_differ(mpisec, tmp_path):
    for name in "ab":
        mpisec("key", "new", tmp_path / name)
    assert hex_digits_of(tmp_path / "a") != hex_digits_of(tmp_path / "b")


@pytest.mark.parametrize("verb", ["show", "check"])
def test_key_file_that_can_not_be_used(mpisec, key, verb):
    assert mpisec("key", verb, key).returncode == 0
    key.chmod(0o644)
    readable = mpisec("key", verb, key)
    assert readable.returncode == 1 and not readable.stdout and str(key) in readable.stderr
    key.chmod(0o600)
    text = key.read_text()
    key.write_text(text[:20] + ("0" if text[20] != "0" else "1") + text[21:])
    assert mpisec("key", verb, key).returncode == 1
    key.unlink()
    missing = mpisec("key", verb, key)
    assert missing.returncode == 1 and "mpisec key new" in missing.stderr


def test_key_from_the_setting(mpisec, key):
    assert str(key) in mpisec("key", "show", env={"MPISEC_KEY_FILE": str(key)}).stdout


@pytest.mark.parametrize("command", [
    "key show", "key check", "key new", "key share node1", "doctor", "doctor --line", "doctor --nodes env", "exec true",
])
def test_a_key_instead_of_its_file(mpisec, key, tmp_path, command):
    """It is not shown in what may go to a log, and no file has its name."""
    text, directory = key.read_text().strip(), tmp_path / "here"
    directory.mkdir()
    ran = mpisec(*command.split(), env={"MPISEC_KEY_FILE": text}, cwd=directory)
    said = ran.stdout + ran.stderr
    assert text.split()[1] not in said and list(directory.iterdir()) == [], said
    if command != "exec true":  # which makes no MPI call
        assert ran.returncode == (0 if command == "doctor --line" else 1), said
        assert "there is a key itself" in said and "correct or unset MPISEC_KEY_FILE, then make a new key" in said, said
    if command == "doctor":
        assert re.search(r"^MPISEC_KEY_FILE +\(a key, not a path\) ", said, re.MULTILINE), said


@pytest.mark.parametrize("command", [("key", "show"), ("key", "new"), ("key", "share", "node1", "--file"), ("key", "derive", "--label", "job 7", "--from")])
def test_a_key_in_an_argument(mpisec, key, tmp_path, command):
    text, directory = key.read_text().strip(), tmp_path / "here"
    directory.mkdir()
    more = [key] if "derive" in command else []
    for given in ([*command, text, *more], [*command[:-1], "--from", key, text] if more else [*command, " " + text]):
        ran = mpisec(*given, cwd=directory)
        said = ran.stdout + ran.stderr
        assert ran.returncode == 1 and "there is a key itself" in said and text.split()[1] not in said and list(directory.iterdir()) == [], said


@pytest.mark.parametrize("variable", ["MPISEC_CONFIG", "MPISEC_AEAD", "MPISEC_TRACE", "MPISEC_PIPELINE", "MPISEC_TUNING"])
def test_a_key_in_another_variable(mpisec, key, variable):
    text = key.read_text().strip()
    ran = mpisec("doctor", env={variable: text})
    assert text.split()[1] not in ran.stdout + ran.stderr, ran


@pytest.mark.parametrize("command", [("lab",), ("bench", "pingpong"), ("report",)])
def test_no_modules_from_the_current_directory(mpisec, tmp_path, command):
    """Where another user can put some."""
    for name in ("mpisec_lab", "mpisec_bench", "runpy", "argparse"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('planted')\n")
    for path in ({}, {"PYTHONPATH": "/nonexistent::/tmp:"}):
        ran = mpisec(*command, "--help", cwd=tmp_path, env=path)
        assert ran.returncode == 0 and "usage" in ran.stdout.lower(), ran


def test_info_names_all_parts(mpisec):
    ran = mpisec("info")
    assert ran.returncode == 0, "a complete build\n" + ran.stdout
    for part in ("libmpisec-mpich.so", "libmpisec-abi.so", "libmpisec-openmpi.so", "openssl", "aes-256-gcm", "/lab"):
        assert part in ran.stdout
    assert re.match(r"mpisec \d+\.\d+\.\d+ \(", ran.stdout)
    assert mpisec("--version").stdout == ran.stdout.splitlines()[0] + "\n"


def test_info_notices_missing_libraries(mpisec, tmp_path):
    (tmp_path / "none").mkdir()
    ran = mpisec("info", env={"MPISEC_PLUGIN_DIR": str(tmp_path / "none")})
    assert ran.returncode == 1 and "no library in" in ran.stdout


def test_doctor_finds_nothing_wrong(mpisec, key, compile_mpi):
    app = compile_mpi(PRELOADED, "mpich-5")
    ran = mpisec("doctor", "--", app, env={"MPISEC_KEY_FILE": str(key)})
    assert ran.returncode == 0 and "no problem found" in ran.stdout, ran.stdout
    assert "libmpi.so.12" in ran.stdout and "libmpisec-mpich.so" in ran.stdout
    assert re.search(r"MPISEC_KEY_FILE\s+\S+key\s+environment", ran.stdout), "settings and where they came from"
    assert hex_digits_of(key) not in ran.stdout


@pytest.mark.parametrize("mpi, environment, transport", [
    ("mpich-5", {}, ""), ("mpich-5", {"MPIR_CVAR_CH4_NETMOD": "ucx"}, "UCX"), ("mpich-5", {"MPICH_CH4_NETMOD": "UCX"}, "UCX"), ("mpich-4", {}, "UCX"),
    ("openmpi-5", {}, "Open MPI's TCP transport")])
def test_doctor_names_transports_that_obey_forged_frames(mpisec, key, compile_mpi, mpi, environment, transport):
    app = compile_mpi(PRELOADED, mpi)
    environment = {"MPISEC_KEY_FILE": str(key)} | environment
    plain = mpisec("doctor", "--", app, env=environment | {"MPISEC_CONNECTIONS": "plain"}).stdout
    authenticated = mpisec("doctor", "--", app, env=environment).stdout
    named = [transport] if transport else []
    assert re.findall(r"^network +note: (.*) obeys frames", plain, re.MULTILINE) == named, plain
    assert re.findall(r"^network +(.*): TCP connections between nodes are authenticated", authenticated, re.MULTILINE) == named, authenticated
    assert "obeys frames" not in authenticated


def test_doctor_names_calls_that_are_not_protected(mpisec, key, compile_mpi):
    app = compile_mpi(
        "#include <mpi.h>\nint main(int c, char** v) {\n MPI_Win w; MPI_Init(&c, &v);\n"
        " if (c > 9) MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w, &w);\n"
        " if (c > 9) MPI_Send(v, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);\n return MPI_Finalize(); }\n",
        "openmpi-5",
    )
    ran = mpisec("doctor", "--", app, env={"MPISEC_KEY_FILE": str(key)})
    assert re.search(r"calls\s+note: MPI_Win_allocate_shared would fail across nodes", ran.stdout), ran.stdout
    assert re.search(r"calls\s+3 MPI procedures that are sealed", ran.stdout), "Init, Send, Finalize"


@pytest.mark.parametrize("environment, words", [
    ({"MPISEC_KEY_FILE": "/nonexistent/key"}, "no key file"),
    ({"MPISEC_AEAD": "nolibrary:aes-256-gcm"}, "nolibrary"),
    ({"MPISEC_SEGMNT": "1"}, "MPISEC_SEGMNT"),
    ({"MPISEC_UNPROTECTED": "allow"}, "in clear"),
    ({"OMPI_COMM_WORLD_RANK": "0"}, "a job of its own"),
])
def test_doctor_finds_problems(mpisec, key, compile_mpi, environment, words):
    app = compile_mpi(PRELOADED, "mpich-5")
    ran = mpisec("doctor", "--", app, env={"MPISEC_KEY_FILE": str(key)} | environment)
    assert ran.returncode == 1, ran.stdout
    assert any("PROBLEM" in line and words in line for line in ran.stdout.splitlines()), ran.stdout


def test_doctor_of_what_is_no_program(mpisec, key):
    ran = mpisec("doctor", "--", "./no-such-program", env={"MPISEC_KEY_FILE": str(key)})
    assert ran.returncode == 1 and "no program ./no-such-program" in ran.stdout


def test_bench_crypto_json(mpisec):
    ran = mpisec("bench", "crypto", "--libraries", "openssl", "--ciphers", "aes-256-gcm", "--sizes", "16,1K",
                 "--repetitions", "1", "--json")
    assert ran.returncode == 0, ran.stderr
    assert "openssl" in json.dumps(json.loads(ran.stdout))


def test_the_collectives_are_one_list(mpisec):
    """Commands, settings, documentation and the C benchmark speak of the collectives of src/base/collectives.def, and the documentation
    of every algorithm."""
    names = re.findall(r"^COLLECTIVE\((\w+), (\w+)\)$", (ROOT / "src/base/collectives.def").read_text(), re.MULTILINE)
    known = json.loads(mpisec("algorithms", "--json").stdout)
    assert list(known) == [name for name, _ in names] and all(capitals == name.upper() for name, capitals in names)
    assert [line.split(None, 1) for line in mpisec("algorithms").stdout.splitlines()] == [[name, ", ".join(all_)] for name, all_ in known.items()]
    benchmark = (ROOT / "bench/collective.c").read_text()
    explained = (ROOT / "docs/collectives.md").read_text()
    assert not [algorithm for all_ in known.values() for algorithm in all_ if f"`{algorithm}`" not in explained]
    settings = mpisec("doctor").stdout
    for command in ("sim", "bench"):
        listed = re.findall(r"^  (\w+)", mpisec(command, "--help").stdout, re.MULTILINE)
        assert set(known) <= set(listed), command
    for name, all_ in known.items():
        assert f"--algorithm TEXT:{{{','.join(all_)}}}" in mpisec("sim", name, "--help").stdout, name
        assert f"MPISEC_{name.upper()} " in settings and f'{{"{name}",' in benchmark, name
        assert f"| `MPISEC_{name.upper()}` | `{name}` |" in (ROOT / "docs/configuration.md").read_text(), name


@pytest.mark.parametrize(("arguments", "said"), [
    (("frob",), 'mpisec: there is no command "frob"; see mpisec --help'),
    (("--frob",), "mpisec: there is no option --frob; see mpisec --help"),
    (("key", "frob", "x"), 'mpisec key: there is no command "frob"; see mpisec key --help'),
    (("bench", "frob"), 'mpisec bench: there is no command "frob"; see mpisec bench --help'),
    (("sim", "--frob"), "mpisec sim: there is no option --frob; see mpisec sim --help"),
    (("key",), "A subcommand is required"),
    (("key", "derive", "file", "--frob"), "--from is required"),
    (("key", "derive", "file", "--from", "/dev/null", "--label", ""), "--label: must not be empty"),
    (("bench", "crypto", "--libraries", "frob"), '--libraries: there is no crypto library "frob" in'),
    (("bench", "engine", "--milliseconds", "nan"), "--milliseconds is no time above 0"),
    (("key", "new", ""), "the name of the key file is empty"),
    (("key", "share", "--file", "", "node1"), "the name of the key file is empty"),
    (("profile", "--report", "/"), "mpisec profile: / is a directory"),
    (("tune", "--times", "/"), "mpisec tune: cannot read the times in /."),
])
def test_unknown_words_are_named(mpisec, arguments, said):
    ran = mpisec(*arguments)
    assert ran.returncode != 0 and said in ran.stderr, ran


def test_a_cipher_that_is_not_known(mpisec, key):
    ran = mpisec("doctor", env={"MPISEC_KEY_FILE": str(key), "MPISEC_AEAD": "AES-256-GCM"})
    assert ran.returncode == 1 and re.search(r"PROBLEM: MPISEC_AEAD=AES-256-GCM: there is no .*; ciphers: .*\baes-256-gcm\b", ran.stdout), ran.stdout


def test_doctor_shows_every_setting(mpisec):
    ran = mpisec("doctor")
    assert re.search(r"^MPISEC_PLUGIN_DIR +beside the library +default$", ran.stdout, re.MULTILINE), ran.stdout
    assert re.search(r"^MPISEC_MPI +found out +default$", ran.stdout, re.MULTILINE), ran.stdout


@pytest.mark.parametrize("arguments", [
    (), ("frob",), ("--frob",), ("key",), ("key", "frob"), ("key", "show", "a", "b"), ("info", "x"), ("bench",),
    ("bench", "frob"), ("bench", "crypto", "--sizes", "1X"), ("bench", "crypto", "--threads", "0"),
    ("bench", "crypto", "--libraries", "nolibrary"), ("bench", "crypto", "--sizes", "-1"), ("bench", "engine", "--packets", "-1"),
    ("bench", "engine", "--messages", "99999999999999999999"), ("bench", "gpu", "--batch", "0"), ("doctor", "--frob"),
])
def test_unknown_input(mpisec, arguments):
    ran = mpisec(*arguments)
    assert ran.returncode == 2 and ran.stderr.strip(), ran


@pytest.mark.parametrize("arguments, example", [
    ((), "mpisec key new"), (("key",), "mpisec key new"), (("key", "new"), "FILE"), (("doctor",), "mpisec doctor -- ./app"),
    (("info",), "Exit status"), (("bench",), "mpisec bench crypto"), (("bench", "crypto"), "--sizes 16,64K,1M"),
    (("lab",), "run"), (("lab", "run"), "--nodes"), (("bench", "pingpong"), "usage"),
])
def test_help(mpisec, arguments, example):
    ran = mpisec(*arguments, "--help")
    assert ran.returncode == 0 and example in ran.stdout, ran
