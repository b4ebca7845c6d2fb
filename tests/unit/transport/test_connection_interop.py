"""Authenticated connections against an implementation of their own, made from docs/protocol.md ("Connections of the MPI library") alone, in both
roles.

MPISEC_BUILD names the build directory that holds tests/unit/transport/connection_peer (default build/release)."""

import os
import pathlib
import secrets
import socket
import struct
import subprocess

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

BUILD = pathlib.Path(os.environ.get("MPISEC_BUILD", "build/release"))
PEER = BUILD / "tests/unit/transport/connection_peer"
HELLO = b"MPIsecC1"
EARLY, MORE = 1 << 31, 1 << 30


def expand(key, info):
    return HKDFExpand(SHA256(), 32, info).derive(key)


class End:
    """One end of a connection that leads to `to`, (address, port)."""

    def __init__(self, connection, key, to, client):
        self.connection, self.client = connection, client
        self.secret = expand(key, b"mpisec v1 connections")
        self.to = bytes(10) + b"\xff\xff" + socket.inet_aton(to[0]) + struct.pack(">H", to[1])
        self.nonce, self.other, self.sent, self.received = secrets.token_bytes(24), None, 0, 0

    def key(self, use):
        """Of the records of `use`."""
        nonces = self.nonce + (self.other or b"") if self.client else self.other + self.nonce
        if use == b"client early":
            nonces = self.nonce if self.client else self.other
        return AESGCM(expand(self.secret, use + b"\0" + self.to + nonces))

    def send(self, content, flags=0):
        """Returns what was sent."""
        use = (b"client" if self.other else b"client early") if self.client else b"server"
        flags |= EARLY if use == b"client early" else 0
        start = struct.pack("<II", len(content) | flags, 0) + content
        tag = self.key(use).encrypt(bytes(4) + struct.pack("<Q", self.sent), b"", start)
        record = (HELLO + self.nonce if self.sent == 0 else b"") + start + tag
        self.sent += 1
        self.connection.sendall(record)
        return record

    def read(self, n):
        data = b""
        while len(data) < n:
            more = self.connection.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive(self):
        """The content of the next record; it must verify."""
        if self.other is None:
            hello = self.read(32)
            assert hello[:8] == HELLO
            self.other = hello[8:]
        start = self.read(8)
        length, passing = struct.unpack("<II", start)
        start += self.read(length & ~(EARLY | MORE))
        use = b"server" if self.client else b"client early" if length & EARLY else b"client"
        self.key(use).decrypt(bytes(4) + struct.pack("<Q", self.received), self.read(16), start)
        assert passing == 0
        self.received += 1
        return start[8:]


@pytest.fixture
def peer():
    """peer(role, key, port): the program under test, on the loopback interface."""
    started = []

    def peer_(role, key, port):
        process = subprocess.Popen([PEER, role, key.hex(), "127.0.0.1", str(port)], stdout=subprocess.PIPE, text=True,
                                   env=os.environ | {"MPISEC_PLUGIN_DIR": str((BUILD / "lib/mpisec").resolve())})
        started.append(process)
        return process

    yield peer_
    for process in started:
        process.kill()
        process.wait()


def listening():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


def as_client(peer, ours, theirs):
    """A connection to the program, with these keys."""
    with listening() as unused:
        to = unused.getsockname()
    process = peer("server", theirs, to[1])
    assert process.stdout.readline() == "listens\n"
    return End(socket.create_connection(to), ours, to, client=True), process


def test_we_connect(peer):
    key = secrets.token_bytes(32)
    end, process = as_client(peer, key, key)
    for text in (b"magic", b"x", bytes(65536), b"last"):
        end.send(text, MORE if text == b"x" else 0)
        assert end.receive() == text
    end.connection.close()
    assert process.wait(10) == 0


def test_it_connects(peer):
    key = secrets.token_bytes(32)
    with listening() as listener:
        peer("client", key, listener.getsockname()[1])
        end = End(listener.accept()[0], key, listener.getsockname(), client=False)
    assert end.receive() == b"greeting"
    for text in (b"welcome", bytes(1000)):
        end.send(text)
        assert end.receive() == text


def test_records_of_more_than_64_kib_are_cut(peer):
    key = secrets.token_bytes(32)
    end, _ = as_client(peer, key, key)
    end.send(b"first")
    assert end.receive() == b"first"
    end.send(bytes(65536))
    assert end.receive() == bytes(65536)
    end.send(bytes(65537))
    with pytest.raises((EOFError, ConnectionResetError)):
        end.receive()


def test_another_key_is_refused(peer):
    end, process = as_client(peer, secrets.token_bytes(32), secrets.token_bytes(32))
    end.send(b"magic")
    assert end.read(8) == b"MPIsecC-"
    assert process.wait(10) != 0


def test_a_repeated_record_is_not_accepted(peer):
    key = secrets.token_bytes(32)
    end, process = as_client(peer, key, key)
    end.send(b"magic")
    assert end.receive() == b"magic"
    record = end.send(b"once")
    end.connection.sendall(record)
    assert process.wait(10) != 0


def test_what_is_sent_is_bound(peer):
    """Each key is for one direction and both nonces: another key does not verify."""
    key = secrets.token_bytes(32)
    end, _ = as_client(peer, key, key)
    end.send(b"magic")
    end.nonce = secrets.token_bytes(24)
    with pytest.raises(InvalidTag):
        end.receive()
