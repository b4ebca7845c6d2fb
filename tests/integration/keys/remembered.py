"""Where a process's memory holds what follows from a key file: `remembered.py KEYFILE PID` prints a line for each place."""

import array
import hashlib
import hmac
import itertools
import os
import re
import sys

PIECE = 8  # bytes of a key that are looked for


def expand(key, info):
    """HKDF-Expand (RFC 5869) to 32 bytes."""
    return hmac.digest(key, info + b"\x01", hashlib.sha256)


def pieces(secret):
    """The secret as it is and as SHA-256 and HMAC have it at work, in pieces, so that a part of it is found too."""
    words = b"".join(secret[at:at + 4][::-1] for at in range(0, 32, 4))
    pads = [bytes(byte ^ pad for byte in secret) for pad in (0x36, 0x5C)]
    forms = [secret, words, *pads, secret.hex().encode(), secret.hex().upper().encode()]
    return {form[at:at + PIECE] for form in forms for at in range(0, len(form) - PIECE + 1, PIECE)}


def mappings(pid):
    """Begin, end, name and flags of each readable mapping (proc(5)); a sanitizer's shadow is left out."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as smaps:
        text = smaps.read()
    for found in re.finditer(r"^([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ \S+ *(.*)\n(?:.*\n)*?VmFlags:(.*)$", text, re.MULTILINE):
        begin, end = int(found[1], 16), int(found[2], 16)
        if end - begin < 1 << 32:
            yield begin, end, found[3] or "anonymous", found[4].split()


def contents(pid, begin, end):
    """(address, bytes) of each run of pages that are in memory: to read others would make them."""
    page = os.sysconf("SC_PAGESIZE")
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap, open(f"/proc/{pid}/mem", "rb") as memory:
        pagemap.seek(begin // page * 8)
        there = array.array("Q", pagemap.read((end - begin) // page * 8))
        for present, run in itertools.groupby(enumerate(there), lambda entry: entry[1] >> 62 != 0):
            if present:
                numbers = [number for number, _ in run]
                memory.seek(begin + numbers[0] * page)
                try:
                    yield begin + numbers[0] * page, memory.read(len(numbers) * page)
                except OSError:  # a device
                    continue


def remembered(key_file, pid):
    """Lines (what, whether hidden from dumps and children, mapping)."""
    with open(key_file, encoding="ascii") as file:
        key = bytes.fromhex(file.read().split()[1])
    secrets = {"key": key, "connections": expand(key, b"mpisec v1 connections")}
    patterns = {what: re.compile(b"|".join(map(re.escape, pieces(secret)))) for what, secret in secrets.items()}
    for begin, end, name, flags in mappings(pid):
        hidden = "hidden" if {"dd", "wf"} <= set(flags) else "open"
        for address, content in contents(pid, begin, end):
            for what, pattern in patterns.items():
                for found in pattern.finditer(content):
                    yield f"{what} {hidden} at {address + found.start():x} in {name} {begin:x}-{end:x}: {found[0].hex()}"


if __name__ == "__main__":
    for place in remembered(*sys.argv[1:]):
        print("remembered:", place)
