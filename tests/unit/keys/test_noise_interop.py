"""Our Noise NNpsk0 against an independent implementation (PyPI noiseprotocol), in both roles.

MPISEC_BUILD names the build directory that holds tests/unit/keys/noise_peer (default build/release)."""

import os
import pathlib
import secrets
import subprocess

import pytest
from cryptography.exceptions import InvalidTag
from noise.connection import NoiseConnection

PEER = pathlib.Path(os.environ.get("MPISEC_BUILD", "build/release")) / "tests/unit/keys/noise_peer"
PROLOGUE = b"cipher aes-256-gcm, 4 nodes"


class Peer:
    """Our side, as a child process that speaks lines of hexadecimal."""

    def __init__(self, role, psk, prologue=PROLOGUE, payload=b""):
        arguments = [PEER.resolve(), role, psk.hex(), prologue.hex() or "-", payload.hex() or "-"]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=10)

    def send(self, data):
        self.process.stdin.write(data.hex() + "\n")
        self.process.stdin.flush()

    def line(self):
        return self.process.stdout.readline().strip()

    def receive(self):
        return bytes.fromhex(self.line())


def theirs(role, psk, prologue=PROLOGUE):
    noise = NoiseConnection.from_name(b"Noise_NNpsk0_25519_ChaChaPoly_SHA256")
    noise.set_psks(psk)
    noise.set_prologue(prologue)
    noise.set_as_initiator() if role == "initiator" else noise.set_as_responder()
    noise.start_handshake()
    return noise


def finish(noise, peer):
    """Handshake hashes agree, and transport messages of many sizes make the round trip."""
    assert peer.line() == "hash " + noise.get_handshake_hash().hex()
    for size in (0, 1, 15, 16, 17, 32, 1000, 65519):
        data = secrets.token_bytes(size)
        peer.send(noise.encrypt(data))
        assert noise.decrypt(peer.receive()) == data


def test_we_initiate():
    psk = secrets.token_bytes(32)
    noise = theirs("responder", psk)
    with Peer("initiator", psk, payload=b"from us") as peer:
        assert noise.read_message(peer.receive()) == b"from us"
        peer.send(noise.write_message(b"from them"))
        assert peer.line() == "payload " + b"from them".hex()
        finish(noise, peer)


def test_they_initiate():
    psk = secrets.token_bytes(32)
    noise = theirs("initiator", psk)
    with Peer("responder", psk, payload=b"from us") as peer:
        peer.send(noise.write_message(b"from them"))
        assert peer.line() == "payload " + b"from them".hex()
        assert noise.read_message(peer.receive()) == b"from us"
        finish(noise, peer)


@pytest.mark.parametrize("same_key, prologue", [(False, PROLOGUE), (True, b"cipher aes-128-gcm, 4 nodes")])
def test_disagreement_is_refused_by_both(same_key, prologue):
    psk = secrets.token_bytes(32)
    other = psk if same_key else secrets.token_bytes(32)
    with Peer("responder", psk) as peer:
        peer.send(theirs("initiator", other, prologue).write_message())
        assert peer.line().startswith("error")
    with Peer("initiator", psk) as peer, pytest.raises(InvalidTag):
        theirs("responder", other, prologue).read_message(peer.receive())
