"""The worked example of docs/protocol.md, computed again from that document's statements alone (no code of MPIsec):
HKDF, SHA-256 and AES-GCM come from PyPI `cryptography`. The C++ test of the same name holds the example against the code."""

import hashlib
import itertools
import re
import struct
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"

# As the document gives them above the example.
SOURCE, DESTINATION, TAG, EPOCH = 1, 4, 7, 2
SMALL_COUNTER, LARGE_COUNTER = 5, 6
THRESHOLD, SEGMENT, CHANNEL_TAG = 32, 40, 3
SMALL, LARGE_HEADER = 1, 2  # kinds


def blocks():
    """The document's ```text blocks whose lines are a name and hexadecimal digits, as one dict name -> bytes."""
    named, name = {}, None
    for block in re.findall(r"```text\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
        for line in block.splitlines():
            match = re.fullmatch(r"(.{23})([0-9a-f]+)", line)
            if not match:
                continue
            name = match[1].strip() or name
            named[name] = named.get(name, b"") + bytes.fromhex(match[2])
    return named


@pytest.fixture(scope="module")
def example():
    found = blocks()
    assert len(found) >= 16, "docs/protocol.md has lost its worked example"
    return found


def expand(key, info):
    return HKDFExpand(hashes.SHA256(), 32, info).derive(key)


def pair_info(label):
    return label + struct.pack("<iiI", SOURCE, DESTINATION, EPOCH)


def nonce(kind, counter):
    return struct.pack("<IQ", kind << 20 | EPOCH, counter)


def associated_data(kind, context, length):
    return struct.pack("<BBHiii16sQ", 1, kind, 0, SOURCE, DESTINATION, TAG, context, length)


def segment_nonce(index, last):
    return struct.pack("<QB3x", index, last)


def test_key_schedule(example):
    assert example["pair aead"] == expand(example["job secret"], pair_info(b"mpisec v1 pair aead"))
    assert example["pair message"] == expand(example["job secret"], pair_info(b"mpisec v1 pair message"))
    info = b"mpisec v1 segments" + struct.pack("<Q", LARGE_COUNTER)
    assert example["message key"] == expand(example["pair message"], info)


def test_small_message(example):
    plain = example["small plaintext"]
    assert example["small nonce"] == nonce(SMALL, SMALL_COUNTER)
    assert example["small ad"] == associated_data(SMALL, example["context"], len(plain))
    sealed = AESGCM(example["pair aead"]).encrypt(example["small nonce"], plain, example["small ad"])
    assert example["small message"] == example["small nonce"] + sealed
    assert len(example["small message"]) == len(plain) + 28


def test_large_message(example):
    plain = example["large plaintext"]
    first_bytes = 12 + 20 + 16 + THRESHOLD + 16
    assert example["large nonce"] == nonce(LARGE_HEADER, LARGE_COUNTER)
    assert example["large ad"] == associated_data(LARGE_HEADER, example["context"], first_bytes)
    assert example["large header"] == struct.pack("<QIIi", len(plain), THRESHOLD, SEGMENT, CHANNEL_TAG)
    header = AESGCM(example["pair aead"]).encrypt(example["large nonce"], example["large header"], example["large ad"])

    starts = [0, *range(THRESHOLD, len(plain), SEGMENT), len(plain)]
    segments = [plain[start:end] for start, end in itertools.pairwise(starts)]
    assert len(segments) == 3
    sealed = []
    for index, segment in enumerate(segments):
        assert example[f"segment {index} nonce"] == segment_nonce(index, index == len(segments) - 1)
        sealed.append(AESGCM(example["message key"]).encrypt(example[f"segment {index} nonce"], segment, None))
    assert example["first message"] == example["large nonce"] + header + sealed[0]
    assert [example["segment 1"], example["segment 2"]] == sealed[1:]


def test_sealed_block_of_a_collective(example):
    for key, label in ("aead", "aead"), ("block", "box"):
        info = f"mpisec v1 collective {label}".encode() + example["context"] + struct.pack("<Q", 0)
        assert example[f"collective {key}"] == expand(example["job secret"], info)
    assert example["block nonce"] == struct.pack("<IiI", 9, 4, 2)
    assert example["block ad"] == struct.pack("<BBHiII16sQQ", 1, 3, 0, 4, 2, 0, example["context"], 9, 16)
    assert example["sealed block"] == AESGCM(example["collective aead"]).encrypt(example["block nonce"], example["small plaintext"], example["block ad"])
    assert example["large block's key"] == expand(example["collective block"], b"mpisec v1 large box" + example["block nonce"])


def test_piece_of_a_partitioned_message(example):
    name = b"mpisec partitioned" + example["context"] + struct.pack("<iiiQ", SOURCE, DESTINATION, TAG, 0)
    assert example["partitioned name"] == hashlib.sha256(name).digest()[:16]
    assert example["partitioned key"] == expand(example["job secret"], b"mpisec v1 partitioned" + example["partitioned name"] + struct.pack("<Q", 2))
    assert example["piece nonce"] == struct.pack("<QI", 2, 0)
    assert example["piece ad"] == struct.pack("<BB6xQQQQ", 1, 4, 4, 16, 512 * 1024, 2)
    sealed = AESGCM(example["partitioned key"]).encrypt(example["piece nonce"], example["small plaintext"], example["piece ad"])
    assert example["piece"] == struct.pack("<Q", 2) + sealed


@pytest.mark.parametrize("changed", ["tag", "context", "kind", "destination"])
def test_associated_data_binds(example, changed):
    """What the small message is bound to: with anything else it does not open."""
    fields = {"kind": SMALL, "source": SOURCE, "destination": DESTINATION, "tag": TAG, "context": example["context"]}
    fields[changed] = example["job secret"][:16] if changed == "context" else fields[changed] + 1
    ad = struct.pack("<BBHiii16sQ", 1, fields["kind"], 0, fields["source"], fields["destination"], fields["tag"], fields["context"], 16)
    with pytest.raises(InvalidTag):
        AESGCM(example["pair aead"]).decrypt(example["small nonce"], example["small message"][12:], ad)


def test_context_of_the_world(example):
    """The derivation that the document describes, for MPI_COMM_WORLD of six ranks."""
    members = struct.pack("<I6i", 6, 0, 1, 2, 3, 4, 5)
    hashed = b"mpisec communicator" + bytes(16) + b"MPI_COMM_WORLD\0" + members + struct.pack("<I", 0) + struct.pack("<Q", 0)
    assert example["context"] == hashlib.sha256(hashed).digest()[:16]


def test_key_file(example):
    """The document's key file line holds the example's key, and its fingerprint is that key's."""
    (key, checksum) = re.search(r"^ {4}mpisec-key-1 ([0-9a-f]{64}) ([0-9a-f]{8})$", DOCUMENT.read_text(), re.MULTILINE).groups()
    key = bytes.fromhex(key)
    assert checksum == hashlib.sha256(b"mpisec-key-1" + key).hexdigest()[:8]
    fingerprint = HKDFExpand(hashes.SHA256(), 8, b"mpisec v1 key fingerprint").derive(key)
    assert f"fingerprint `{fingerprint.hex()}`" in DOCUMENT.read_text()
