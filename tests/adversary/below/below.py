"""Attacks on the MPI library's own messages, one at a time: what becomes of a program (victim.c) whose job somebody on the network changes.

    below.py systematic --mpi mpich-5 --build build/release     every message x every mutation, goes on where it stopped
    below.py summary build/below/*.jsonl                        docs/results/adversary-below.json, and the table of docs/adversary.md
    below.py run --mpi openmpi-5 "2>0#17 drop+"                 one attack, with what the job said

A library below the MPI library (below.c) carries out one attack in one job. The oracle: what each rank got is what it gets without
MPIsec and attacker, or the job ends; nobody gets anything else, and nothing crosses in clear.
"""

import argparse
import collections
import itertools
import json
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(ROOT / "lab"))

from mpisec_lab import build  # noqa: E402
from mpisec_lab.cluster import Cluster  # noqa: E402

FRAMINGS = {"mpich-5": "xnet", "mpich-5-abi": "xnet", "openmpi-5": "btl", "openmpi-4": "btl", "mpich-4": "uct"}
MARKER = "MPISEC-BELOW-CLEAR"
SECTIONS = ["start", *re.findall(r'\{"(\w+)", \w+\}', (HERE / "victim.c").read_text()), "end"]
CONSTRUCTORS = ["start", "session", "dup", "split", "split_type", "create", "cart", "graph", "inter"]
BLOCK = 64  # what ranks of a node send each other in the section "local"
SECONDS = 15  # for a job; what has not ended then has no end
PROOF_SECONDS = 25  # more for a session: its ranks look that long for each other on one node
BETWEEN_TIDYINGS = 50  # attacks: a job that is killed may leave 2 MB in memory for each communicator
TRIES = 4  # for a job that is left alone: MPICH 4.0 may hang in MPI_Finalize
SETTINGS = {"MPISEC_CONNECTIONS": "plain", "MPISEC_PIPELINE_THRESHOLD": "64K", "MPISEC_SEGMENT": "128K", "MPISEC_STALL_TIME": "2",
            "MPISEC_STALL_ACTION": "abort", "MPISEC_YIELD": "on", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_orte_abort_print_stack": "0"}

AS_PLAIN, REFUSED, STALL, LIBRARY = "as plain", "MPIsec's error", "stall abort", "library's error"
CRASH, OWN_CRASH = "crash in the library", "crash elsewhere"
LATE, NO_END, DIFFERENT, CLEAR, MISSED = "said, not ended", "no end", "DIFFERENT RESULT", "IN CLEAR", "not reached"
OUTCOMES = [AS_PLAIN, REFUSED, STALL, LIBRARY, CRASH, OWN_CRASH, LATE, NO_END, DIFFERENT, CLEAR, MISSED]

ASKING = ("put", "get", "rget", "ack", "am09", "am11", "read-req", "cts", "tag-rts")  # say which memory is wanted
LIBRARIES = re.compile(r"^lib(mpi|mpich|mpi_abi)\.so|^lib(open-pal|open-rte|fabric|ucp|uct|ucs|pmix|event|hwloc)|^mca_|^unknown")

Frame = collections.namedtuple("Frame", "sender receiver number section kind length header shown fields")
Attack = collections.namedtuple("Attack", "text family what section only")  # only: sections that the program runs, () for all


def framing_of(mpi, connections):
    """What passes the library below, with that value of MPISEC_CONNECTIONS."""
    authenticated = connections == "authenticate" or (connections == "auto" and FRAMINGS[mpi] != "xnet")
    return "records" if authenticated else FRAMINGS[mpi]


class Jobs:
    """Runs victim.c on a standing cluster of two nodes with one attack each. With MPISEC_CONNECTIONS in the settings the attacks are on the records
    of the connections that it authenticates."""

    def __init__(self, mpi, ranks, binary, settings=None, cluster=None):
        self.mpi, self.ranks, self.binary = mpi, ranks, binary
        self.settings = SETTINGS | (settings or {})
        self.victim = build.compile_mpi(HERE / "victim.c", mpi, flags=["-std=gnu11", "-ldl"])
        self.library = compile_library()
        self._own = None if cluster else Cluster(2, pin=False)
        self.cluster = cluster or self._own.__enter__()

    def close(self):
        """Ends the cluster, unless it was given."""
        if self._own:
            self._own.close()

    def tidy(self):
        """Removes what jobs that were killed have left in the nodes' shared memory."""
        for node in range(2):
            self.cluster.execute(node, ["find", "/dev/shm", "-type", "f", "-delete"])

    def plain(self, only=()):
        """{(rank, section): digest} of a job without MPIsec and without the library below."""
        for _ in range(TRIES):
            result = self.cluster.run([self.victim, *only], ranks=self.ranks, mpi=self.mpi, plain=True, env=self.settings, timeout=60)
            if result.returncode == 0:
                break
        return digests(result.check().stdout)

    def run(self, attack="", only=(), record=False, plain=False):
        """(Result, directory with what the library below wrote; the caller removes it)."""
        directory = Path(tempfile.mkdtemp(prefix="mpisec-below-"))
        framing = FRAMINGS[self.mpi] if plain else framing_of(self.mpi, self.settings["MPISEC_CONNECTIONS"])
        env = self.settings | {"LD_PRELOAD": self.library, "BELOW_FRAMING": framing, "BELOW_DIRECTORY": directory, "BELOW_CLEAR": MARKER}
        if attack:
            env["BELOW_ATTACK"] = attack
        if record:
            env["BELOW_RECORD"] = "1"
        limit = SECONDS + (PROOF_SECONDS if "session" in only else 0)
        result = self.cluster.run([self.victim, *only], ranks=self.ranks, mpi=self.mpi, env=env, timeout=limit, mpisec=self.binary,
                                  plain=plain)
        return result, directory

    def record(self, only=(), plain=False):
        """[Frame] of a job that is left alone, in the order of each direction."""
        for _ in range(TRIES):
            result, directory = self.run(only=only, record=True, plain=plain)
            frames = read_frames(directory)
            shutil.rmtree(directory)
            if result.returncode == 0:
                break
        result.check()
        return frames

    def attack(self, attack, expected):
        """What became of the job: a dict with the outcome."""
        started = time.monotonic()
        result, directory = self.run(attack.text, attack.only)
        hits = [line for file in directory.glob("hits-*") for line in file.read_text().splitlines()]
        clear = [line for file in directory.glob("clear-*") for line in file.read_text().splitlines()]
        shutil.rmtree(directory, ignore_errors=True)
        outcome, detail = judge(result, expected, self.ranks, clear)
        hit = [line for line in hits if line.startswith("hit ")]
        if not hit and outcome == AS_PLAIN:
            outcome = MISSED
        return {"attack": attack.text, "family": attack.family, "what": attack.what, "section": SECTIONS[attack.section],
                "only": list(attack.only), "outcome": outcome, "detail": detail, "hit": " ".join(hit[:1])[:160],
                "seconds": round(time.monotonic() - started, 1)}


def compile_library():
    """The library below, for every MPI alike."""
    return build.compile_mpi(HERE / "below.c", "mpich-5", flags=["-std=gnu11", "-shared", "-fPIC", "-pthread"], name="below.so")


def digests(text):
    """{(rank, section): digest}"""
    found = re.findall(r"^rank (\d+) ([\w.]+) ([0-9a-f]{16})$", text, re.MULTILINE)
    return {(int(rank), section): digest for rank, section, digest in found}


def judge(result, expected, ranks, clear):
    """(outcome, one line about it)."""
    got = digests(result.stdout)
    wrong = [f"rank {rank} {section}" for (rank, section), digest in got.items() if expected.get((rank, section)) != digest]
    errors = re.findall(r"^rank \d+ \w+ error .*$", result.stdout, re.MULTILINE)
    ended = len(re.findall(r"^rank \d+ end$", result.stdout, re.MULTILINE)) == ranks
    said = result.stdout + result.stderr
    if clear:
        return CLEAR, clear[0]
    if wrong:
        return DIFFERENT, ", ".join(wrong)
    refused = set(re.findall(r"^rank \d+ (\w+) refused$", said, re.MULTILINE))
    due = {key: digest for key, digest in expected.items() if key[1].split(".")[0] not in refused}
    if result.returncode == 0 and ended and got == due:
        return AS_PLAIN, ""
    own_error = next((line for line in errors if "MPIsec" in line), "")
    stalled = re.search(r"mpisec: .*aborting the job, as MPISEC_STALL_ACTION=abort asks", said)
    if result.timed_out and (stalled or own_error):
        return LATE, (own_error or stalled.group())[:200]
    if result.timed_out:
        return NO_END, f"{len(got)} of {len(expected)} results, the last {max(got, key=list(expected).index)[1] if got else 'none'}"
    if stalled:
        return STALL, stalled.group()[:120]
    if own_error:
        return REFUSED, own_error[:200]
    own = re.search(r"^.*\bmpisec\b.*$", result.stderr, re.MULTILINE | re.IGNORECASE)
    signal = re.search(r"Segmentation fault|Bus error|signal (?:11|7|8|4|6)\b|SIG(?:SEGV|BUS|FPE|ILL|ABRT)|EXIT CODE: (?:139|135|136|132|134|11|7|6)\b|"
                       r"double free|malloc\(\)|free\(\)|munmap_chunk|corrupted", said)
    if signal:
        where = crashed_in(said)
        return CRASH if LIBRARIES.search(where) else OWN_CRASH, where
    if own:
        return REFUSED, own.group()[:200]
    return LIBRARY, (errors[0] if errors else last_words(said))[:200]


def crashed_in(text):
    """The name of the object in which a process died, as the library below or Open MPI says it."""
    found = re.search(r"below: rank \d+ dies of signal \d+ in (\S.*)", text)
    if found:
        return Path(found.group(1)).name
    frames = [Path(name).name for name in re.findall(r"\[ ?\d+\] ([^\s(]+)\(", text)]
    objects = [name for name in frames if not name.startswith(("libc.so", "libpthread", "libstdc++"))]
    return (objects or ["unknown: " + last_words(text)])[0]


def last_words(text):
    """The line that tells most of a job's end."""
    lines = [line.strip() for line in text.splitlines() if not line.startswith("rank ") and line.strip(" =-")]
    lines = [line for line in lines if not re.match(r"\[(?:proxy|mpiexec)", line)] or lines
    telling = [line for line in lines if re.search(r"assert|signal|fault|error|corrupt|fail|abort", line, re.IGNORECASE)]
    return (telling or lines or ["it said nothing"])[0][:200]


def read_frames(directory):
    """[Frame] of what the library below recorded."""
    frames = []
    for file in sorted(directory.glob("frames-*")):
        for line in file.read_text().splitlines():
            _, place, section, kind, length, header, shown, *fields = line.split(" ")
            sender, receiver, number = map(int, re.split("[>#]", place))
            fields = {name: (int(offset), int(size)) for name, offset, size in (field.split(":") for field in fields)}
            frames.append(Frame(sender, receiver, number, int(section), kind, int(length), int(header), bytes.fromhex(shown), fields))
    return frames


def own_payloads(first, second):
    """The beginnings of payloads that are the MPI library's own: the same in two jobs, as nothing is that MPIsec sealed."""
    shown = [{frame.shown[frame.header :] for frame in frames} for frames in (first, second)]
    return {payload for payload in shown[0] & shown[1] if payload}


def kind_of(frame, own):
    """control (no payload, or of another kind), library (a payload of the MPI library's own) or sealed."""
    if frame.length == frame.header or frame.kind not in ("tag", "match", "msg", "data", "frag", "btl-put", "am02", "am03", "am04", "am06", "am33"):
        return "control"
    return "library" if frame.shown[frame.header :] in own else "sealed"


def mutations(frame, ranks, everything=True):
    """[(text, family)] for one message."""
    found = []
    for name, (_, size) in frame.fields.items():
        bits = [0, 8 * size - 1] if everything else [0]
        found += [(f"flip:{name}:{bit}", "header changed") for bit in bits]
    payload = frame.length - frame.header
    if payload:
        found += [(f"flip:payload:{bit}", "payload changed") for bit in sorted({0, 4 * payload, 8 * payload - 1})]
        found += [("cut:1", "cut or longer"), (f"cut:{payload}", "cut or longer"), ("extend:1", "cut or longer")]
    plus = ["", "+"] if "seq" in frame.fields else [""]
    found += [(f"drop{p}", "dropped") for p in plus] + [(f"dup{p}", "duplicated") for p in plus]
    found += [(f"swap{p}", "reordered") for p in plus] + [("hold:200", "reordered")]
    found += [(f"replay{p}:{back}", "replayed") for p in plus for back in (1, 5)]
    if frame.kind in ASKING:
        words = [name for name in frame.fields if name.startswith("word")]
        found += [(f"set:{name}:{value}", "memory asked for") for name in words for value in (-800000, -150000, 200000)]
    for name, values in (("source", range(ranks)), ("tag", (0, 1)), ("context", (0, 1, 2, 3))):
        if name in frame.fields:
            offset, size = frame.fields[name]
            now = int.from_bytes(frame.shown[offset : offset + size], "little")
            others = [value for value in values if value != now]
            found += [(f"set:{name}:{value}", "redirected") for value in others]
            found += [(f"forge:-1:40:{name}={value}", "forged") for value in others]
    return found


def forged_locals(frames, ranks):
    """Attacks that give a rank, while it waits for a rank of its own node, a message that names that one as its source."""
    found = []
    section = SECTIONS.index("local")
    seen = collections.Counter()
    for frame in frames:
        if frame.section != section or not {"source", "tag", "context"} <= frame.fields.keys():
            continue
        seen[frame.receiver, frame.sender] += 1
        if seen[frame.receiver, frame.sender] > 4:
            continue
        for tag in range(6):
            for source in sorted({frame.receiver ^ 1, frame.sender}):
                text = f"{frame.sender}>{frame.receiver}#{frame.number} forge:{BLOCK}:40:source={source},tag={tag},context=0"
                found.append(Attack(text, "forged for its node", f"{frame.kind} as of rank {source}", section, ()))
    return found


def messages(frames, own, ranks):
    """[Attack] of every message x every mutation, those of one message of each sort first, then of one of each sort in each section."""
    levels = [{}, {}, {}]
    for frame in frames:
        sort = (frame.kind, kind_of(frame, own), min(frame.length, 4096).bit_length())
        key = (sort, frame.section, frame.sender < frame.receiver)
        level = 0 if sort not in levels[0] else 1 if key not in levels[1] else 2
        levels[0].setdefault(sort, True)
        levels[1].setdefault(key, True)
        for text, family in mutations(frame, ranks):
            place = f"{frame.sender}>{frame.receiver}#{frame.number}"
            attack = Attack(f"{place} {text}", family, f"{kind_of(frame, own)} {frame.kind}", frame.section, ())
            levels[2].setdefault(level, []).append(attack)
    return [levels[2].get(level, []) for level in range(3)]


def program_of(section):
    """The sections that the program runs for the messages of one: what it does before its first is "start"."""
    return ("small",) if section == "start" else (section,)


UNTRUTHS = [(-1, 1000), (1000, -1), (0, 0), (1, 1), (1, 0), (0, 1)]


def lies(jobs, sections=None, untruths=None):
    """[Attack] that tell both sides of two ranks the same untruth about what the MPI library exchanges to make a communicator."""
    found = []
    for name in sections or CONSTRUCTORS:
        only = program_of(name)
        first, second = jobs.record(only), jobs.record(only)
        own, section = own_payloads(first, second), SECTIONS.index(name)
        counts, own_lengths = collections.Counter(), set()
        for frame in first:
            payload = frame.length - frame.header
            if frame.section == section and payload in (4, 8, 12, 16, 20, 24, 32, 40, 48):
                counts[payload, frame.sender < frame.receiver] += 1
                if kind_of(frame, own) == "library":
                    own_lengths.add(payload)
        for length in sorted(own_lengths):
            for number in range(min(counts[length, True], counts[length, False], 12)):
                text = f"* mirror:{section}:{length}:{number}"
                found.append(Attack(text, "lie told to both", f"{length} bytes", section, only))
                for word in range(min(length // 4, 6)):
                    for low, high in untruths or UNTRUTHS:
                        text = f"* lie:{section}:{length}:{number}:{word}:{low}:{high}"
                        found.append(Attack(text, "lie told to both", f"{length} bytes", section, only))
    return found


def plan(jobs, seed):
    """[Attack] in the order in which they are tried, and {sort of message: how many}."""
    first, second = jobs.record(), jobs.record()
    own = own_payloads(first, second)
    counts = collections.Counter(kind_of(frame, own) for frame in first)
    sorts = collections.Counter(f"{kind_of(frame, own)} {frame.kind}" for frame in first)
    shuffle = random.Random(seed).shuffle
    levels = messages(first, own, jobs.ranks)
    if jobs.ranks == 2:
        levels.insert(0, lies(jobs))
    else:
        levels[0] += forged_locals(first, jobs.ranks)
    for level in levels:
        shuffle(level)
    return [attack for level in levels for attack in level], {"messages": dict(counts), "sorts": dict(sorts), "levels": [len(level) for level in levels]}


# ---- the systematic run -----------------------------------------------------------------------------------------------------------


def systematic(options):
    """Tries what has not been tried yet, appending a line for each to options.out."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    head = {"mpi": options.mpi, "ranks": options.ranks, "settings": dict(options.env), "seed": options.seed}
    jobs = Jobs(options.mpi, options.ranks, options.binary, dict(options.env))
    attacks, found = plan(jobs, options.seed)
    attacks = [attack for attack in attacks if not options.family or attack.family in options.family]
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    tried = {json.loads(line)["attack"] for line in lines if '"attack"' in line}
    open_ones = [attack for attack in attacks if attack.text not in tried][: options.limit]
    expected = {only: jobs.plain(only) for only in {attack.only for attack in open_ones}}
    print(f"{options.mpi}, {options.ranks} ranks: {found}; {len(attacks)} attacks, {len(tried)} tried, {len(open_ones)} to do", flush=True)
    lock, totals = threading.Lock(), collections.Counter()
    out = options.out.open("a")
    if not lines:
        out.write(json.dumps(head | found | {"attacks": sum(found["levels"])}) + "\n")

    def work(own_jobs):
        for number in itertools.count(1):
            if number % BETWEEN_TIDYINGS == 0:
                own_jobs.tidy()
            with lock:
                if time.monotonic() > deadline:
                    return
                if not open_ones:
                    return
                attack = open_ones.pop(0)
            said = own_jobs.attack(attack, expected[attack.only])
            with lock:
                totals[said["outcome"]] += 1
                out.write(json.dumps(said) + "\n")
                out.flush()
                if said["outcome"] in (DIFFERENT, CLEAR):
                    print(f"{said['outcome']}: {attack.text} ({attack.what}, {said['section']}): {said['detail']}", flush=True)

    workers = [jobs] + [Jobs(options.mpi, options.ranks, options.binary, dict(options.env)) for _ in range(options.workers - 1)]
    deadline = time.monotonic() + options.seconds
    threads = [threading.Thread(target=work, args=[worker]) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in workers:
        worker.close()
    print(dict(totals))
    return 1 if totals[DIFFERENT] or totals[CLEAR] else 0


def summarise(files):
    """The summary of the files of systematic runs (dict)."""
    summary = []
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        head, tried = lines[0] | {"attacks": sum(lines[0]["levels"])}, lines[1:]
        families = {}
        for said in tried:
            families.setdefault(said["family"], collections.Counter())[said["outcome"]] += 1
        different = [said for said in tried if said["outcome"] in (DIFFERENT, CLEAR)]
        summary.append(head | {"tried": len(tried), "outcomes": dict(collections.Counter(said["outcome"] for said in tried)),
                               "families": {name: dict(counts) for name, counts in sorted(families.items())},
                               "broken": [{key: said[key] for key in ("attack", "what", "section", "only", "outcome", "detail")} for said in different]})
    return summary


def table(summary):
    """The summary as Markdown."""
    lines = ["| MPI, ranks | messages: sealed, library's, control | attacks | tried | " + " | ".join(OUTCOMES) + " |",
             "| --- " * (4 + len(OUTCOMES)) + "|"]
    for run in summary:
        counts = [run["messages"].get(kind, 0) for kind in ("sealed", "library", "control")]
        settings = "".join(f", {name}={value}" for name, value in run["settings"].items())
        lines.append(f"| {run['mpi']}, {run['ranks']}{settings} | {counts[0]}, {counts[1]}, {counts[2]} | {run['attacks']} | {run['tried']} | "
                     + " | ".join(str(run["outcomes"].get(outcome, 0)) for outcome in OUTCOMES) + " |")
    families = collections.defaultdict(collections.Counter)
    for run in summary:
        for name, counts in run["families"].items():
            families[name].update(counts)
    lines += ["", "| mutation | tried | " + " | ".join(OUTCOMES) + " |", "| --- " * (2 + len(OUTCOMES)) + "|"]
    for name, counts in sorted(families.items()):
        lines.append(f"| {name} | {sum(counts.values())} | " + " | ".join(str(counts.get(outcome, 0)) for outcome in OUTCOMES) + " |")
    return "\n".join(lines)


def _pair(text):
    name, _, value = text.partition("=")
    return name, value


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("systematic", "run"):
        command = commands.add_parser(name)
        command.add_argument("--mpi", default="mpich-5", choices=FRAMINGS)
        command.add_argument("--ranks", type=int, default=4, choices=[2, 4])
        command.add_argument("--build", type=Path, default=ROOT / "build/release", help="the build of MPIsec to attack")
        command.add_argument("--env", type=_pair, action="append", default=[], help="NAME=VALUE for the job")
    commands.choices["systematic"].add_argument("--out", type=Path)
    commands.choices["systematic"].add_argument("--limit", type=int)
    commands.choices["systematic"].add_argument("--seconds", type=float, default=float("inf"))
    commands.choices["systematic"].add_argument("--workers", type=int, default=1)
    commands.choices["systematic"].add_argument("--seed", type=int, default=1)
    commands.choices["systematic"].add_argument("--family", action="append", help="only these mutations")
    commands.choices["run"].add_argument("attack")
    commands.choices["run"].add_argument("--only", action="append", default=[], help="a section of the program")
    commands.choices["run"].add_argument("--plain", action="store_true", help="without MPIsec")
    command = commands.add_parser("summary")
    command.add_argument("files", type=Path, nargs="+")
    command.add_argument("--json", type=Path, default=ROOT / "docs/results/adversary-below.json")
    options = parser.parse_args()
    if options.command != "summary":
        options.binary = options.build.resolve() / "bin/mpisec"
    if options.command == "systematic" and not options.out:
        options.out = ROOT / f"build/below/{options.mpi}-{options.ranks}.jsonl"
    return options


def main():
    """Runs the command; returns the exit status."""
    options = _arguments()
    if options.command == "summary":
        summary = summarise(options.files)
        options.json.write_text(json.dumps(summary, indent=1) + "\n")
        print(table(summary))
        return 0
    if options.command == "systematic":
        return systematic(options)
    jobs = Jobs(options.mpi, options.ranks, options.binary, dict(options.env))
    result, directory = jobs.run(options.attack, options.only, plain=options.plain)
    clear = [line for file in directory.glob("clear-*") for line in file.read_text().splitlines()]
    hits = "".join(file.read_text() for file in directory.glob("hits-*"))
    outcome = judge(result, jobs.plain(options.only), jobs.ranks, [] if options.plain else clear)
    shutil.rmtree(directory)
    jobs.close()
    print(result.stdout, result.stderr, hits, *outcome, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
