"""The provider under an OpenSSL that has cipher pipelines (3.5 and newer), built from the sources in a crate: Debian 12 has 3.0."""

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mpisec_lab import places

HERE = Path(__file__).parent
DEPS = HERE.parents[2] / ".deps"
CRATE, VERSION = "openssl-src", "300.6.1"  # OpenSSL 3.6.3

pytestmark = pytest.mark.slow  # it is built in three minutes


def _fetch(to):
    """The crate's sources in the directory `to`."""
    (to / "lib.rs").write_text("")
    (to / "Cargo.toml").write_text(
        '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
        f'[dependencies]\n{CRATE} = "={VERSION}"\n')
    fetched = subprocess.run(["cargo", "vendor", "--quiet", "vendor"], cwd=to, check=False, capture_output=True, text=True, timeout=300)
    if fetched.returncode:
        pytest.skip(f"the crate {CRATE} could not be fetched: {fetched.stderr[-300:]}")
    return to / "vendor" / CRATE / "openssl"


@pytest.fixture(scope="module")
def openssl():
    """A directory with its headers in include/ and its libcrypto.a: the crate lacks what a shared one needs."""
    if not shutil.which("cargo") or not shutil.which("perl"):
        pytest.skip("no cargo or no perl, so no newer OpenSSL to try")
    built = DEPS / f"openssl-{VERSION}"
    DEPS.mkdir(exist_ok=True)
    with open(DEPS / "openssl.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (built / "libcrypto.a").exists():
            work = DEPS / "openssl-unfinished"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            source = _fetch(work)
            configure = ["perl", "./Configure", "no-shared", "no-tests", "no-docs", "no-legacy"]
            for command in (configure, ["make", "build_generated"], ["make", f"-j{os.cpu_count()}", "libcrypto.a"]):
                subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=1800)
            shutil.rmtree(built, ignore_errors=True)
            built.mkdir()
            shutil.copytree(source / "include", built / "include")
            shutil.copy2(source / "libcrypto.a", built)
            shutil.rmtree(work)
    return built


@pytest.mark.parametrize("size", [1, 100, 256, 1024, 4096, 16384, 200000])
def test_cipher_pipelines(openssl, tmp_path, size):
    """CBC encryption of sixteen messages at once gives what OpenSSL gives one after the other."""
    program = tmp_path / "pipelines"
    subprocess.run(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", f"-I{openssl / 'include'}", "-o", program, HERE / "pipelines.c",
                    openssl / "libcrypto.a", "-ldl", "-pthread"], check=True)
    provider = subprocess.run([places.find_mpisec(), "provider", "--path"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENSSL_")}
    environment |= {"MPISEC_PROVIDER_LIBRARY": "all", "MPISEC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([program, Path(provider).parent, str(size)], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    said = re.match(r"([\d.]+): \d+ bytes of 16 messages are the same", done.stdout)
    assert said and tuple(map(int, said[1].split("."))) >= (3, 5), done.stdout
