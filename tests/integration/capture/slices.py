"""What a program of this folder sends: it writes all its bytes to one file and says which part of that each call carries."""

import re


def slices_of(said):
    """[(name with its length, offset, length), …] of the lines "slice NAME OFFSET LENGTH", which are all there."""
    found = re.findall(r"^slice (\S+) (\d+) (\d+)$", said, re.MULTILINE)
    assert f"wire: {len(found)} slices" in said
    return [(f"{name} of {length} bytes", int(offset), int(length)) for name, offset, length in found]


def taken(capture, directory):
    """(TCP streams, plaintext) of a run that captured to `directory`/pcap; both files are removed."""
    streams, plaintext = capture.streams(), (directory / "plaintext").read_bytes()
    (directory / "pcap").unlink()
    (directory / "plaintext").unlink()
    return streams, plaintext
