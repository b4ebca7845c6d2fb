"""The OpenSSL provider under programs as they are: the same bytes with it and without."""

import functools
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mpisec_lab import places

KEY, VECTOR = bytes(range(32)).hex(), bytes(range(16, 32)).hex()
CIPHERS = ("aes-128-ecb", "aes-256-ecb", "aes-128-cbc", "aes-192-cbc", "aes-256-cbc", "aes-128-cfb", "aes-256-cfb8", "aes-256-cfb1", "aes-192-ofb",
           "aes-128-ctr", "aes-256-ctr")


@functools.cache
def path():
    return subprocess.run([places.find_mpisec(), "provider", "--path"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """An environment in which nothing of ours is."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MPISEC_", "OPENSSL_"))}
    return clean | {"MPISEC_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def provided(plain, tmp_path_factory):
    """The same with the configuration that `mpisec provider` prints; every mode is offered, whatever this machine's calibration says."""
    file = tmp_path_factory.mktemp("configuration") / "mpisec.cnf"
    printed = subprocess.run([places.find_mpisec(), "provider"], capture_output=True, text=True, check=True).stdout
    file.write_text(printed)
    return plain | {"OPENSSL_CONF": str(file), "MPISEC_PROVIDER_LIBRARY": "all"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "data"
    file.write_bytes(b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(20000)) + b"odd")
    return file


def run(*command, env, **options):
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, timeout=60, check=False, **options)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def test_openssl_has_it(provided):
    listed = run("openssl", "list", "-providers", env=provided).decode()
    assert "name: MPIsec" in listed and "status: active" in listed, listed
    offered = run("openssl", "list", "-cipher-algorithms", env=provided).decode()
    assert any("AES-256-CTR" in line and "mpisec" in line for line in offered.splitlines()), offered


@pytest.mark.parametrize("cipher", CIPHERS)
def test_openssl_enc(cipher, plain, provided, data):
    words = ["openssl", "enc", f"-{cipher}", "-K", KEY[: int(cipher[4:7]) // 4]] + ([] if cipher.endswith("ecb") else ["-iv", VECTOR])
    sealed = run(*words, "-in", data, env=plain)
    assert run(*words, "-in", data, env=provided) == sealed
    assert run(*words, "-d", env=provided, input=sealed) == data.read_bytes()


def test_openssl_enc_says_the_same_of_a_wrong_key(plain, provided, data):
    words = ["openssl", "enc", "-aes-128-cbc", "-iv", VECTOR, "-K"]
    sealed = run(*words, KEY[:32], "-in", data, env=plain)
    for env in (plain, provided):
        done = subprocess.run([*words, "ff" * 16, "-d"], input=sealed, env=env, capture_output=True, timeout=60, check=False)
        assert done.returncode != 0 and b"bad decrypt" in done.stderr, done.stderr


def test_openssl_loads_it_by_path(plain, data):
    directory, module = os.path.split(path())
    words = ["-provider-path", directory, "-provider", module.removesuffix(".so"), "-provider", "default", "-propquery", "?provider=mpisec"]
    enc = ["openssl", "enc", "-aes-256-ctr", "-K", KEY, "-iv", VECTOR, "-in", data]
    assert run(*enc, *words, env=plain | {"MPISEC_PROVIDER_LIBRARY": "all"}) == run(*enc, env=plain)


def test_openssl_speed(provided):
    said = run("openssl", "speed", "-seconds", "1", "-bytes", "16384", "-mr", "-evp", "aes-128-ctr", env=provided).decode()
    assert "+F:" in said, said


PYTHON = """
import hashlib, sys
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
data = bytes(range(256)) * 1000 + b"odd"
for n in 16, 24, 32:
    key = bytes(range(n))
    for mode in modes.CTR(bytes(16)), modes.CBC(bytes(16)), modes.GCM(bytes(12)), modes.OFB(bytes(16)):
        whole = data[: len(data) // 16 * 16]
        encryptor = Cipher(algorithms.AES(key), mode).encryptor()
        print(hashlib.sha256(encryptor.update(whole) + encryptor.finalize() + getattr(encryptor, "tag", b"")).hexdigest())
    sealed = AESGCM(key).encrypt(bytes(12), data, b"ad")
    assert AESGCM(key).decrypt(bytes(12), sealed, b"ad") == data
    print(hashlib.sha256(sealed).hexdigest())
print([line.split("/")[-1].strip() for line in open("/proc/self/maps") if "libmpisec-provider" in line][:1], file=sys.stderr)
"""


def test_cryptography(plain, provided):
    """Its wheel has an OpenSSL of its own inside."""
    pytest.importorskip("cryptography")
    done = [subprocess.run([sys.executable, "-c", PYTHON], env=env, capture_output=True, text=True, timeout=60, check=False) for env in (plain, provided)]
    assert [one.returncode for one in done] == [0, 0], done[1].stderr
    assert done[0].stdout == done[1].stdout


@pytest.fixture(scope="module")
def certificate(tmp_path_factory, plain):
    directory = tmp_path_factory.mktemp("certificate")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost", "-keyout", directory / "key", "-out", directory / "cert", env=plain)
    return directory


SERVER = """
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/cert", sys.argv[1] + "/key")
version, suite = sys.argv[2:4]
context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
if version == "TLSv1_2":
    context.set_ciphers(suite)
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    connection = context.wrap_socket(listener.accept()[0], server_side=True)
    with connection.makefile("rb") as stream:
        received = stream.read(1_000_003)
    connection.sendall(received)
print(open("/proc/self/maps").read().count("libmpisec-provider") > 0)
"""

CLIENT = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1] + "/cert")
connection = context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[2]))), server_hostname="localhost")
data = bytes(i * 7 % 256 for i in range(1_000_003))
connection.sendall(data)  # not beside recv(): an SSL object serves one thread at a time
with connection.makefile("rb") as stream:
    assert stream.read(len(data)) == data
print(connection.version(), connection.cipher()[0])
"""


@pytest.mark.parametrize("sides", ["server", "client", "both"])
@pytest.mark.parametrize(("version", "suite"), [("TLSv1_3", "TLS_AES_256_GCM_SHA384"), ("TLSv1_2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
                                                ("TLSv1_2", "ECDHE-ECDSA-AES128-SHA256"), ("TLSv1_2", "ECDHE-ECDSA-CHACHA20-POLY1305")])
def test_tls_of_python(version, suite, sides, plain, provided, certificate):
    """The system's Python and OpenSSL, with the provider at either end."""
    python = "/usr/bin/python3"
    if not os.path.exists(python):
        pytest.skip("no /usr/bin/python3")
    with subprocess.Popen([python, "-c", SERVER, certificate, version, suite], env=plain if sides == "client" else provided, stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            port = server.stdout.readline().strip()
            said = run(python, "-c", CLIENT, certificate, port, env=plain if sides == "server" else provided).decode().split()
            assert said == [version.replace("_", "."), suite]
            assert server.stdout.readline().strip() == str(sides != "client")
        finally:
            server.kill()


def _unpacked(name, program, directory):
    """The program of a Debian package, which is fetched and unpacked but not installed: that would start its service."""
    if found := shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return found
    done = subprocess.run(["apt-get", "download", *name.split()], cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    packages = list(directory.glob("*.deb"))
    if done.returncode != 0 or not packages:
        pytest.skip(f"{program} is not installed and apt-get download {name} fails: {done.stderr.strip().splitlines()[-1:]}")
    for package in packages:
        subprocess.run(["dpkg", "-x", package, directory], check=True)
    return next(directory.glob(f"usr/sbin/{program}"))


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _wait_for(port, process):
    for _ in range(300):
        assert process.poll() is None, process.stderr.read()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not listen")


NGINX = """
daemon off; master_process off; pid {directory}/pid; error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {directory}/1; proxy_temp_path {directory}/2; fastcgi_temp_path {directory}/3;
    uwsgi_temp_path {directory}/4; scgi_temp_path {directory}/5;
    server {{
        listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}/cert; ssl_certificate_key {certificate}/key; ssl_protocols TLSv1.3;
        root {root};
    }}
}}
"""


@pytest.mark.slow
def test_curl_and_nginx(plain, provided, certificate, data, tmp_path):
    """TLS 1.3 with both suites of AES-GCM and with ChaCha20-Poly1305, the provider on both sides, on one, on none."""
    curl = shutil.which("curl")
    if not curl:
        pytest.skip("curl is not installed")
    nginx = _unpacked("nginx", "nginx", tmp_path)
    for env_server in (plain, provided):
        port = _free_port()
        (tmp_path / "nginx.conf").write_text(NGINX.format(directory=tmp_path, port=port, certificate=certificate, root=data.parent))
        with subprocess.Popen([nginx, "-c", tmp_path / "nginx.conf", "-p", tmp_path], env=env_server, stderr=subprocess.PIPE, text=True) as server:
            try:
                _wait_for(port, server)
                for suite in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"):
                    for env in (plain, provided):
                        got = run(curl, "-sS", "--cacert", certificate / "cert", "--resolve", f"localhost:{port}:127.0.0.1", "--noproxy", "*",
                                  "--tls13-ciphers", suite, f"https://localhost:{port}/data", env=env)
                        assert got == data.read_bytes()
            finally:
                server.send_signal(signal.SIGTERM)


def _with_user_sshd(directory):
    """Words before a command that give it the user that sshd becomes, where nobody has installed it: for this process only."""
    passwd = directory / "passwd"
    text = Path("/etc/passwd").read_text()
    if "\nsshd:" in text:
        return []
    passwd.write_text(f"{text}sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n")
    return ["unshare", "--mount", "sh", "-c", f'mount --bind {passwd} /etc/passwd && exec "$@"', "sh"]


@pytest.fixture
def empty_directory():
    """Where sshd's child goes to before anyone has authenticated."""
    there = os.path.isdir("/run/sshd")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    yield
    if not there:
        os.rmdir("/run/sshd")


@pytest.mark.slow
def test_openssh(plain, provided, data, empty_directory, tmp_path):
    """ssh and sshd, of which OpenSSL does AES-GCM and AES-CTR."""
    if not shutil.which("ssh"):
        pytest.skip("ssh is not installed")
    sshd = _unpacked("openssh-server libwrap0 libnsl2 libtirpc3", "sshd", tmp_path)
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name, env=plain)
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized")
    common = ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={tmp_path}/known", "-o", "IdentitiesOnly=yes", "-i", tmp_path / "user", "-F", "none"]
    for env_server in (plain, provided):
        port = _free_port()
        words = ["-D", "-e", "-f", "/dev/null", "-p", port, "-h", tmp_path / "host", "-o", "ListenAddress=127.0.0.1", "-o",
                 f"AuthorizedKeysFile={tmp_path}/authorized", "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", f"PidFile={tmp_path}/sshd.pid",
                 "-o", "UsePAM=no", "-o", "Ciphers=aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes128-ctr,aes256-ctr"]
        libraries = {"LD_LIBRARY_PATH": str(tmp_path / "usr/lib/x86_64-linux-gnu")}  # of what was unpacked
        command = [*_with_user_sshd(tmp_path), sshd, *words]
        with subprocess.Popen([str(word) for word in command], env=env_server | libraries, stderr=subprocess.PIPE, text=True) as server:
            try:
                _wait_for(port, server)
                for cipher in ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes256-ctr"):
                    for env in (plain, provided):
                        got = run("ssh", *common, "-c", cipher, "-p", port, "root@127.0.0.1", f"cat {data}", env=env)
                        assert got == data.read_bytes(), cipher
            finally:
                server.send_signal(signal.SIGTERM)
