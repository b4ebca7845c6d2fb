"""Sources and versions from the package registries: Debian's source packages and PyPI's source distributions."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from harness.description import Missing

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT / "build" / "conformance"


def installed_version(package):
    """Of a Debian package. Raises Missing."""
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], capture_output=True, text=True, check=False)
    status, _, version = asked.stdout.partition(" ")
    if status != "installed":
        raise Missing(f"Debian's package {package} is not installed: `make conformance` does it")
    return version


def debian_source(name, *parts):
    """The unpacked directory of a Debian source package's upstream tarball; parts: patterns of what to unpack, all by default."""
    home = HOME / "sources" / name
    unpacked = home / "unpacked"
    if unpacked.exists():
        return unpacked
    home.mkdir(parents=True, exist_ok=True)
    options = _private_lists(home)
    fetch = ["apt-get", *options, "--quiet", "source", "--download-only", "--tar-only", name]
    called(["apt-get", *options, "--quiet", "update"], home)
    called(fetch, home)
    tarball = next(iter(home.glob("*.orig.tar.*")), None)
    if tarball is None:
        raise Missing(f"Debian's source package {name} has no upstream tarball")
    unfinished = home / "unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    called(["tar", "-xf", tarball, "-C", unfinished, "--strip-components=1", "--wildcards", *(f"*/{part}" for part in parts)], home)
    unfinished.rename(unpacked)
    return unpacked


def _private_lists(home):
    """Options that let apt-get read source packages without a change to the machine's own lists."""
    lists = HOME / "apt"
    for directory in ("lists/partial", "cache/archives/partial"):
        (lists / directory).mkdir(parents=True, exist_ok=True)
    entries = []
    for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
        entries += _source_entries(file.read_text()) if file.exists() else []
    if not entries:
        raise Missing("apt knows no Debian archive from which source packages could come")
    (lists / "sources.list").write_text("\n".join(sorted(set(entries))) + "\n")
    return ["-o", f"Dir::Etc::SourceList={lists}/sources.list", "-o", "Dir::Etc::SourceParts=-", "-o", f"Dir::State::Lists={lists}/lists",
            "-o", f"Dir::Cache={lists}/cache", "-o", "APT::Sandbox::User=root"]


def _source_entries(text):
    """deb-src lines for the main archive that the one-line or deb822 text names."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["deb"] and "main" in words and "debian" in line:
            found.append("deb-src " + line.split(None, 1)[1])
    for stanza in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith("#"))
        if {"URIs", "Suites", "Components"} <= fields.keys() and "main" in fields["Components"] and "debian" in fields["URIs"]:
            signed = f"[signed-by={fields['Signed-By']}] " if "Signed-By" in fields else ""
            found += [f"deb-src {signed}{fields['URIs']} {suite} main" for suite in fields["Suites"].split()]
    return found


def pypi_source(name, version, part, home=HOME / "sources", **env):
    """The directory `part` of a PyPI source distribution. env: what its own set-up script asks for."""
    home = home / f"{name}-{version}"
    if (home / part).exists():
        return home / part
    home.mkdir(parents=True, exist_ok=True)
    pip = [home / "venv/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    called([sys.executable, "-m", "venv", home / "venv"], home)
    called([*pip, "install", "pip>=26"], home)  # older ones do not build every source distribution's metadata
    called([*pip, "download", "--no-binary", name, "--no-deps", "--dest", home, f"{name}=={version}"], home, env=os.environ | env)
    with tarfile.open(next(home.glob("*.tar.gz"))) as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.2 of Debian 12 has none
        top = archive.getnames()[0].split("/")[0]
        archive.extractall(home, [member for member in archive if member.name.startswith(f"{top}/{part}/")], **safely)
    shutil.move(home / top / part, home / part)
    shutil.rmtree(home / "venv")
    return home / part


def called(command, directory, **options):
    """Runs a command with its output in `directory`/log; raises Missing with the end of it when it fails."""
    with open(Path(directory) / "log", "a", encoding="utf-8") as log:
        done = subprocess.run([str(word) for word in command], cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False,
                              **options)
    if done.returncode != 0:
        end = (Path(directory) / "log").read_text(errors="replace")[-600:]
        raise Missing(f"`{' '.join(map(str, command))}` ended with status {done.returncode}: {end}")
