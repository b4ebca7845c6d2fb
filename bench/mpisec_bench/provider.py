"""The OpenSSL provider beside OpenSSL: cycles per byte of AES, alternating

Pure software (OPENSSL_ia32cap without AES and vector instructions), OpenSSL's default provider, and MPIsec's with one thread and with
more, each a process of its own (bench/provider.cpp): all measure one case before any measures the next. Ratios are medians of what
the rounds gave. Needs a C++ compiler and OpenSSL's headers.
"""

import argparse
import datetime
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mpisec_bench.conditions import byte_counts, counts, machine
from mpisec_bench.result import FORMAT, Document, Row, require_place
from mpisec_lab import places
from mpisec_lab.errors import LabError
from mpisec_lab.options import count, duration

_SOURCE = Path(__file__).resolve().parent.parent / "provider.cpp"
MODES = ("ecb", "cbc", "cfb", "ofb", "ctr", "gcm")
_MORE = ("cfb1", "cfb8", "xts", "chacha", "cbc16")  # not in the paper's table
_BITS = (128, 192, 256)
_IN_BLOCKS = ("ecb", "cbc", "cbc16")  # without padding: whole blocks of 16 bytes alone
PAPER = "Boosting OpenSSL AES Encryption with Intel IPP (Intel)"
# Its speed-ups over OpenSSL 0.9.8 in pure software: encryption and decryption on one core, decryption on twelve.
PAPER_ENCRYPT, PAPER_DECRYPT, PAPER_THREADS = 3, 10, 40
SOFTWARE, OPENSSL = "software", "openssl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `mpisec bench provider`."""
    parser.add_argument("--modes", default=",".join(MODES), help=f"{','.join(MODES)}; also {','.join(_MORE)} (chacha: ChaCha20-Poly1305; "
                        "cbc16: 16 buffers of CBC encryption in ASYNC jobs); by commas")
    parser.add_argument("--bits", type=_key_sizes, default=_BITS, help="of the key (128,192,256)")
    parser.add_argument("--sizes", type=byte_counts, default="256,512,1024,2048,4096,8192,16384", help="bytes of a call (256 to 16K, in powers of two)")
    parser.add_argument("--threads", type=counts, default=(1,), help="of the provider, as 1,2,4; used from 512K on (1)")
    parser.add_argument("--rounds", type=count, default=7, help="turns per case (7)")
    parser.add_argument("--milliseconds", type=duration, default=2, help="of a contestant's turn (2)")
    parser.add_argument("-o", "--output", metavar="FILE.json", help="the result")
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of a table")


def _key_sizes(text: str) -> tuple[int, ...]:
    """The type of --bits."""
    bits = counts(text)
    if unknown := [one for one in bits if one not in _BITS]:
        raise argparse.ArgumentTypeError(f"AES has no keys of {unknown[0]} bits: {', '.join(map(str, _BITS))}")
    return bits


def _compiled() -> Path:
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        raise LabError("mpisec bench provider compiles a program, and there is no C++ compiler: install g++ and libssl-dev")
    command = [compiler, "-O2", "-std=c++17", "-o"]
    digest = hashlib.sha256((_SOURCE.read_text() + " ".join(command)).encode()).hexdigest()[:16]
    target = places.build() / "apps" / f"provider-{digest}" / "provider"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        made = subprocess.run([*command, str(unfinished), str(_SOURCE), "-lcrypto"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise LabError(f"{_SOURCE} does not compile; are OpenSSL's headers (libssl-dev) installed?\n{made.stderr}")
        os.replace(unfinished, target)
    return target


class Contestant:
    """A process that measures what it is asked to."""

    def __init__(self, name: str, program: Path, module: str, environment: dict[str, str]) -> None:
        self.name = name
        modules = places.libraries(places.find_mpisec())
        clean = {key: value for key, value in os.environ.items() if key != "OPENSSL_CONF"}
        self._process = subprocess.Popen([str(program), str(modules), module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         env=clean | environment)

    def cycles(self, mode: str, bits: int, size: int, encrypt: bool, seconds: float) -> float:
        """Cycles per byte; LabError when the process ended."""
        assert self._process.stdin and self._process.stdout
        try:
            print(mode, bits, size, int(encrypt), seconds, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline()
        if not line:
            raise LabError(f"the {self.name} process of mpisec bench provider ended; is libmpisec-provider.so installed?")
        return float(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=30)


def _contestants(threads: Sequence[int]) -> list[Contestant]:
    program = _compiled()
    return [
        Contestant(SOFTWARE, program, "default", {"OPENSSL_ia32cap": "0:0"}),
        Contestant(OPENSSL, program, "default", {}),
        *(Contestant(f"provider-{count}", program, "libmpisec-provider", {"MPISEC_PROVIDER_THREADS": str(count)}) for count in threads),
    ]


def _cases(arguments: argparse.Namespace) -> Iterator[tuple[str, int, int, bool]]:
    modes = arguments.modes.split(",")
    unknown = set(modes) - {*MODES, *_MORE}
    if unknown:
        raise LabError(f"there is no mode {', '.join(sorted(unknown))}: {', '.join((*MODES, *_MORE))}")
    sizes = [int(size) for size in arguments.sizes.split(",")]
    for mode in modes:
        if unfit := [size for size in sizes if size < 1 or (mode in _IN_BLOCKS and size % 16) or (mode == "xts" and size < 16)]:
            raise LabError(f"{mode} cannot be measured with {unfit[0]} bytes: " + ("give multiples of 16" if mode in _IN_BLOCKS else "give more"))
    for mode in modes:
        for bits in (256,) if mode == "chacha" else arguments.bits:
            if mode == "xts" and bits == 192:
                continue
            for size in sizes:
                yield from ((mode, bits, size, encrypt) for encrypt in ((True,) if mode == "cbc16" else (True, False)))


def _row(case: tuple[str, int, int, bool], samples: dict[str, list[float]]) -> Row:
    mode, bits, size, encrypt = case
    row: Row = {"mode": mode, "bits": bits, "bytes": size, "direction": "encrypt" if encrypt else "decrypt", "cycles_per_byte": {}, "over_openssl": {},
                "over_software": {}}
    for name, values in samples.items():
        row["cycles_per_byte"][name] = statistics.median(values)
        row["over_openssl"][name] = statistics.median(theirs / ours for theirs, ours in zip(samples[OPENSSL], values, strict=True))
        row["over_software"][name] = statistics.median(theirs / ours for theirs, ours in zip(samples[SOFTWARE], values, strict=True))
    return row | {"rounds": len(samples[OPENSSL])}


def measure(arguments: argparse.Namespace, words: str) -> Document:
    """Runs the whole table; returns its document."""
    started, begin = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), time.monotonic()
    cases = list(_cases(arguments))
    contestants = _contestants(arguments.threads)
    rows = []
    try:
        for case in cases:
            samples: dict[str, list[float]] = {one.name: [] for one in contestants}
            for _ in range(arguments.rounds):
                for one in contestants:
                    samples[one.name].append(one.cycles(*case, arguments.milliseconds / 1000))
            rows.append(_row(case, samples))
    finally:
        for one in contestants:
            one.close()
    about = machine() | {"openssl": _version(), "instructions": _instructions()}
    return {"format": FORMAT, "benchmark": "provider", "title": "The OpenSSL provider", "command": words, "complete": True, "started": started,
            "seconds": round(time.monotonic() - begin, 1), "conditions": about, "rows": rows}


def _version() -> str:
    openssl = shutil.which("openssl")
    return subprocess.run([openssl, "version"], capture_output=True, text=True, check=False).stdout.strip() if openssl else "unknown"


def _instructions() -> list[str]:
    """Of those that decide how fast AES is, the ones that this CPU has."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:
        words = info.read().split()
    return [name for name in ("aes", "pclmulqdq", "vaes", "vpclmulqdq", "avx2", "avx512f") if name in words]


def table(document: Document) -> str:
    """Lines: the case, how many times as fast as OpenSSL and as pure software, then cycles per byte."""
    rows: list[dict[str, Any]] = document["rows"]
    ours = [name for name in rows[0]["cycles_per_byte"] if name.startswith("provider-")]
    about = document["conditions"]
    head = f"{'':<9} {'bytes':>8} {'':<8}" + "".join(f" {name.replace('-', ' ') + '/openssl':>20}" for name in ours) + "".join(
        f" {'/software':>10}" for _ in ours) + "".join(f" {name:>11}" for name in rows[0]["cycles_per_byte"])
    lines = [f"{about['openssl']}; {about['cpu']}, {about['cores']} cores, {' '.join(about['instructions'])}",
             "times as fast as OpenSSL's default provider, as pure software; then cycles per byte (of the time-stamp counter)", head]
    for row in rows:
        lines.append(f"{row['mode']:<5} {row['bits']} {row['bytes']:>8} {row['direction']:<8}"
                     + "".join(f" {row['over_openssl'][name]:>20.2f}" for name in ours)
                     + "".join(f" {row['over_software'][name]:>10.2f}" for name in ours)
                     + "".join(f" {value:>11.3f}" for value in row["cycles_per_byte"].values()))
    lines.append(f"{PAPER}, over pure software: encryption {PAPER_ENCRYPT}x, decryption more than {PAPER_DECRYPT}x on one core, "
                 f"up to {PAPER_THREADS}x on twelve")
    return "\n".join(lines)


def run(arguments: argparse.Namespace, words: str) -> bool:
    """`mpisec bench provider`."""
    if arguments.output:
        require_place(arguments.output)
    document = measure(arguments, words)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1) if arguments.json else table(document))
    return True
