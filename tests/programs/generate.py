"""Random programs: a list of lines derived from a seed. What a line means is said in program.h and the files beside it.

The interpreter skips a step whose objects are not there, so the generator need not know which ranks a communicator has: it knows of
each only whether it joins two groups, and whether it has a topology. What MPI leaves open is avoided here or in the interpreter.
"""

import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Lines = list[str]

MISTAKES = re.findall(r"NAMED\((\w+)\),", (Path(__file__).parent / "errors.c").read_text())
PREDEFINED = range(10)  # datatypes.c
NUMBERS = (1, 2, 3, 4, 5, 7)  # those that sums are made of
PAIRS = (8, 9)
FIRST_TYPE = 10
COMPLETIONS = ("waitall", "wait", "wait_back", "waitany", "waitsome", "test", "testall", "testany", "testsome", "status")
BLOCKING_SENDS = ("send", "ssend", "bsend", "rsend")
SENDS = (*BLOCKING_SENDS, "isend", "issend", "ibsend", "irsend")
RECEIVES = ("recv", "probe", "iprobe", "mprobe", "improbe", "imrecv", "irecv", "irecv", "irecv")
COLLECTIVES = ("barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
               "alltoallw", "reduce", "allreduce", "scan", "exscan", "reduce_scatter_block", "reduce_scatter")
REDUCTIONS = ("reduce", "allreduce", "scan", "exscan", "reduce_scatter_block", "reduce_scatter")
NEIGHBOUR_COLLECTIVES = ("neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw")
IN_THREADS = ("p2p", "p2p", "p2p", "collective", "collective", "collective", "exchange", "make_comm", "make_type", "start", "complete",
              "p2p_init", "end_comm", "ask")
# Around everything that changes how a message travels, with thresholds of 4K and 64K (lab.py).
SIZES = (0, 1, 1, 2, 7, 16, 100, 1000, 4095, 4096, 4097, 9000, 20000, 65535, 65536, 65537, 100000, 200000)


class Program:
    """One program being made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.lines = [f"program seed={seed}"]
        self.comms = {0: "intra", 1: "self"}  # number: intra, self, inter, cart, graph, dist
        self.pending: dict[int, str] = {}  # communicators that an unfinished duplicate will be
        self.types = {number: (number, 1) for number in PREDEFINED}  # number: (class, units)
        self.slots: list[int] = []  # requests under way
        self.persistent: dict[int, bool] = {}  # slot: active
        self.ops: dict[int, str] = {}
        self.keys: dict[int, str] = {}
        self.handlers: list[int] = []
        self.next_op, self.next_key, self.next_handler = 10, 1, 1
        self.next_comm, self.next_type, self.next_slot, self.next_tag = 2, FIRST_TYPE, 1, 1
        self.thread = 0

    # ---- little helpers
    def say(self, verb: str, **values: object) -> None:
        if self.thread:
            values["thread"] = self.thread
        words = [verb]
        for key, value in values.items():
            if value is None or value is False:
                continue
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(int(value) if value is True else value)
            words.append(f"{key}={text}")
        self.lines.append(" ".join(words))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, choices: Iterable[T]) -> T:
        return self.random.choice(list(choices))

    def some(self, low: int, high: int, n: int) -> list[int]:
        return [self.random.randint(low, high) for _ in range(n)]

    def any_comm(self) -> int:
        """A communicator, the younger the likelier."""
        number = self.comm_of(None)
        assert number is not None, "there always is one"
        return number

    def comm_of(self, kinds: Sequence[str] | None) -> int | None:
        """A communicator of one of the kinds (of any but MPI_COMM_SELF), the younger the likelier; None when there is none."""
        known = [number for number, kind in self.comms.items() if (kinds is None and kind != "self") or (kinds and kind in kinds)]
        if not known:
            return None
        return self.pick(known[-6:] if self.chance(0.8) else known)

    def tag(self) -> int:
        self.next_tag += 10
        return self.next_tag

    def step_seed(self) -> int:
        return self.random.randrange(1 << 30)

    def slot(self) -> int:
        self.next_slot += 1
        return self.next_slot

    def type_pair(self, classes: Iterable[int] | None = None) -> tuple[int, int]:
        """Two types of one class, and units that a count of the first is of."""
        known = [number for number, (cls, _) in self.types.items() if classes is None or cls in classes]
        first = self.pick(known[-6:] if self.chance(0.6) else known)
        same = [number for number, (cls, _) in self.types.items() if cls == self.types[first][0]]
        return first, self.pick(same)

    def units(self, number: int, share: int = 1) -> int:
        """How many units: bytes of one of SIZES, seldom some MiB."""
        cls, units = self.types[number]
        size = (1, 4, 8, 2, 8, 4, 1, 4, 8, 12)[cls] if cls < 10 else 24
        most = 3 << 20 if self.chance(0.004) else self.pick(SIZES)
        if units > 1:
            most = min(most, 20000)
        return max(most // share // size // units * units, 0 if most == 0 else units)

    # ---- communicators
    def new_comm(self, verb: str, source: int, kind: str, **values: object) -> int:
        number = self.next_comm
        self.next_comm += 1
        self.say(verb, comm=number, **{"from": source}, **values)
        if verb.startswith("idup"):
            self.pending[number] = kind
        else:
            self.comms[number] = kind
        return number

    def make_comm(self) -> None:
        if self.next_comm > 100:
            return
        source = self.any_comm()
        kind = self.comms[source]
        verbs = ["dup", "dup", "dup_with_info", "idup", "idup_with_info", "split", "split", "create"]
        if kind == "inter":
            verbs += ["merge", "merge"]
        else:
            verbs += ["split_type", "create_group", "cart", "cart", "graph", "dist_graph", "dist_graph_adjacent", "intercomm", "intercomm"]
        if kind == "cart":
            verbs += ["cart_sub"] * 3
        if self.thread:
            verbs = [verb for verb in verbs if not verb.startswith("idup")]
        getattr(self, "make_" + self.pick(verbs))(source, kind)

    def make_dup(self, source: int, kind: str) -> None:
        self.new_comm("dup", source, kind)

    def make_dup_with_info(self, source: int, kind: str) -> None:
        self.new_comm("dup_with_info", source, kind, info=self.chance(0.5))

    def make_idup(self, source: int, kind: str) -> None:
        self.new_comm("idup", source, kind)

    def make_idup_with_info(self, source: int, kind: str) -> None:
        self.new_comm("idup_with_info", source, kind, info=self.chance(0.5))

    def make_split(self, source: int, kind: str) -> None:
        colours = [self.pick([-1, 0, 0, 1, 1]) if self.chance(0.5) else self.pick([0, 1]) for _ in range(6)]
        self.new_comm("split", source, "inter" if kind == "inter" else "intra", colours=colours, keys=self.some(-3, 3, 6))

    def make_split_type(self, source: int, _: str) -> None:
        self.new_comm("split_type", source, "intra", keys=self.some(-3, 3, 6))

    def some_ranks(self) -> list[int]:
        ranks = list(range(self.random.randint(2, 6)))
        self.random.shuffle(ranks)
        return ranks[: self.random.randint(1, len(ranks))]

    def make_create(self, source: int, kind: str) -> None:
        self.new_comm("create", source, "inter" if kind == "inter" else "intra", ranks=self.some_ranks(),
                      by=self.pick([None, None, "exclusion"]))

    def make_create_group(self, source: int, _: str) -> None:
        self.new_comm("create_group", source, "intra", ranks=self.some_ranks(), by=self.pick([None, None, "exclusion"]), tag=self.tag())

    def make_cart(self, source: int, _: str) -> None:
        self.new_comm("cart", source, "cart", ndims=self.random.randint(1, 3), periods=self.some(0, 1, 3), reorder=self.chance(0.4),
                      leave=self.pick([0, 0, 0, 1, 2]))

    def make_cart_sub(self, source: int, _: str) -> None:
        # MPICH 4.0 and Intel give all but one rank MPI_COMM_NULL when no dimension remains.
        self.new_comm("cart_sub", source, "cart", remain=[1, *self.some(0, 1, 2)])

    def make_graph(self, source: int, _: str) -> None:
        self.new_comm("graph", source, "graph", distances=self.some(1, 3, self.random.randint(1, 2)), reorder=self.chance(0.4),
                      leave=self.pick([0, 0, 0, 1, 2]))

    def make_dist_graph(self, source: int, _: str) -> None:
        # The order of several neighbours is open (MPI 4.1, section 8.5.4).
        self.new_comm("dist_graph", source, "dist", distances=[self.random.randint(0, 3)], by=self.random.randint(0, 2),
                      weighted=self.chance(0.5), reorder=self.chance(0.4), info=self.chance(0.3))

    def make_dist_graph_adjacent(self, source: int, _: str) -> None:
        distances = self.random.sample(range(4), self.random.randint(1, 3))
        self.new_comm("dist_graph_adjacent", source, "dist", distances=distances, weighted=self.chance(0.5), reorder=self.chance(0.4))

    def make_intercomm(self, source: int, _: str) -> None:
        self.new_comm("intercomm", source, "inter", cut=self.random.randint(0, 4), by=self.pick([None, "parity"]), tag=self.tag())

    def make_merge(self, source: int, _: str) -> None:
        self.new_comm("merge", source, "intra", high=self.chance(0.5))

    def finish_duplicate(self) -> None:
        if self.pending:
            number = self.pick(self.pending)
            self.comms[number] = self.pending.pop(number)
            self.say("finish_duplicate", comm=number)

    def end_comm(self) -> None:
        number = self.any_comm()
        if number > 1 and not (self.thread and len(self.comms) == 2):
            # MPI_Comm_disconnect waits for all that is under way on the communicator.
            safe = not self.slots and not self.persistent and not self.thread
            self.say("disconnect" if safe and self.chance(0.3) else "free_comm", comm=number)
            del self.comms[number]

    def ask(self) -> None:
        self.say("ask", comm=self.any_comm(), **{"with": self.any_comm() if self.chance(0.7) else None})

    def name(self) -> None:
        self.say("name", comm=self.any_comm())

    # ---- datatypes
    def new_type(self, kind: str, base: int | list[int], units: int | None, **values: object) -> None:
        number = self.next_type
        if number >= 120:
            return
        self.next_type += 1
        self.say("type", type=number, kind=kind, bases=base, **values)
        cls, of_base = self.types[base if isinstance(base, int) else base[0]]
        if units is None:
            self.types[number] = (100 + number, 1)
        elif 0 < units * of_base <= 64:
            self.types[number] = (cls, units * of_base)

    def make_type(self) -> None:
        base = self.pick([number for number, (_, units) in self.types.items() if units <= 8])
        kind = self.pick(["contiguous", "vector", "hvector", "indexed", "hindexed", "indexed_block", "hindexed_block", "struct",
                          "mixture", "resized", "duplicate", "subarray", "darray"])
        large = self.chance(0.3)
        if kind == "contiguous":
            n = self.random.randint(1, 5)
            self.new_type(kind, base, n, n=n, large=large)
        elif kind in ("vector", "hvector"):
            n, length = self.random.randint(1, 4), self.random.randint(1, 3)
            stride = length + self.random.randint(0, 2)
            stride = -stride if self.chance(0.3) else stride
            self.new_type(kind, base, n * length, n=n, length=length, stride=stride * (64 if kind == "hvector" else 1), large=large)
        elif "indexed" in kind:
            n, same = self.random.randint(1, 4), "block" in kind
            lengths = self.some(1, 3, 1) * n if same else self.some(1, 3, n)
            places = [i * 4 - 6 for i in range(4)]
            self.random.shuffle(places)
            self.new_type(kind, base, sum(lengths), at=[p * (64 if kind[0] == "h" else 1) for p in places[:n]],
                          lengths=lengths[0] if same else lengths)
        elif kind in ("struct", "mixture"):
            n = self.random.randint(1, 4)
            bases = [base] * n if kind == "struct" else [self.pick(PREDEFINED) for _ in range(n + 1)]
            lengths = self.some(1, 3, len(bases))
            units = sum(lengths) if kind == "struct" and self.types[base][1] == 1 else None
            self.new_type("struct", bases, units, at=[i * 512 + self.pick([0, 8, 64]) for i in range(len(bases))], lengths=lengths)
        elif kind == "resized":
            self.new_type(kind, base, 1, low=self.random.randint(-8, 8), more=self.pick([0, 8, 24]), large=large)
        elif kind == "duplicate":
            self.new_type(kind, base, 1)
        elif kind == "subarray":
            parts = self.some(1, 3, 2)
            starts = self.some(0, 2, 2)
            self.new_type(kind, base, parts[0] * parts[1], sizes=[p + s + self.random.randint(0, 1) for p, s in zip(parts, starts)],
                          parts=parts, starts=starts, order=self.pick([None, "fortran"]))
        else:
            size, n, length = self.random.randint(4, 12), self.random.randint(1, 3), self.random.randint(1, 3)
            which = self.random.randrange(n)
            units = sum(min(length, size - start) for start in range(which * length, size, n * length))
            self.new_type(kind, base, units, size=size, n=n, length=length, which=which)

    def free_type(self) -> None:
        known = [number for number in self.types if number >= FIRST_TYPE]
        if known:
            number = self.pick(known)
            del self.types[number]
            self.say("free_type", type=number)

    # ---- messages
    def message_values(self, comm: int, sends: Sequence[str], receives: Sequence[str]) -> dict[str, Any]:
        stype, rtype = self.type_pair()
        pattern = self.pick(["shift", "shift", "pair", "gather", "scatter", "all"])
        share = 4 if pattern == "all" else 1
        values: dict[str, Any] = {"comm": comm, "send": self.pick(sends), "receive": self.pick(receives), "stype": stype, "rtype": rtype,
                  "pattern": pattern, "a": self.random.randint(0, 5), "b": self.random.randint(0, 5), "tag": self.tag(),
                  "n": self.pick([1, 1, 1, 2, 4]), "seed": self.step_seed(), "large": self.chance(0.25),
                  "units": [self.units(stype, share) for _ in range(self.random.randint(1, 3))],
                  "slack": self.pick([0, 0, 1, 7]), "same_tag": self.chance(0.3)}
        if "rsend" in values["send"]:
            values["receive"] = "irecv"
        values["any_tag"] = self.chance(0.2)
        # Who waits for any message must not be waited for by a blocking send.
        values["any_source"] = self.chance(0.25) and values["send"] in ("isend", "ibsend", "bsend", "issend", "irsend")
        if self.thread and "b" in values["send"]:
            values["send"] = "isend"  # the attached buffer is the process's
        return values

    def p2p(self) -> None:
        values = self.message_values(self.any_comm() if self.thread or self.chance(0.95) else 1, SENDS, RECEIVES)
        if values["send"] in ("isend", "issend", "irsend") and values["receive"] == "irecv" and self.chance(0.5) and self.next_slot < 120 and not (
                values["any_tag"] and values["any_source"]):
            values["id"] = self.slot()
            self.slots.append(values["id"])
        else:
            values["how"] = [self.pick(COMPLETIONS) for _ in range(2)]
        self.say("p2p", **values)

    def p2p_init(self) -> None:
        if self.next_slot >= 120:
            return
        values = self.message_values(self.any_comm(), ("send", "ssend", "rsend"), ("irecv",))
        values["id"] = self.slot()
        values["any_tag"] = values["any_tag"] and not values["any_source"]
        self.persistent[values["id"]] = False
        self.say("p2p_init", **values)

    def start(self) -> None:
        idle = [slot for slot, active in self.persistent.items() if not active]
        if idle:
            slot = self.pick(idle)
            self.persistent[slot] = True
            self.say("start", id=slot, all=self.chance(0.5))

    def complete(self) -> None:
        active = [slot for slot, running in self.persistent.items() if running]
        known = self.slots + active
        if not known:
            return
        chosen = self.random.sample(known, self.random.randint(1, len(known)))
        self.say("complete", ids=chosen, how=[self.pick(COMPLETIONS) for _ in range(3)])
        for slot in chosen:
            if slot in self.persistent:
                self.persistent[slot] = False
            else:
                self.slots.remove(slot)

    def exchange(self) -> None:
        stype, rtype = self.type_pair()
        mode = self.pick(["plain", "replace", "i", "ireplace"])
        self.say("exchange", comm=self.any_comm(), mode=mode, stype=stype, rtype=rtype, b=self.random.randint(0, 3),
                 tag=self.tag(), units=self.units(stype), slack=0, line=self.chance(0.4), seed=self.step_seed(),
                 large=self.chance(0.25))

    def cancel(self) -> None:
        self.say("cancel", comm=self.any_comm(), tag=self.tag(), any_source=self.chance(0.3), stype=0, rtype=0)

    def nobody(self) -> None:
        kind = self.pick(PREDEFINED)
        self.say("nobody", comm=self.any_comm(), stype=kind, rtype=kind, units=self.pick([0, 3]))

    # ---- collectives
    def make_op(self) -> None:
        number = self.next_op
        if number >= 30:
            return
        self.next_op += 1
        self.ops[number] = self.pick(["sum", "left", "right", "affine"])
        self.say("op", op=number, kind=self.ops[number], large=self.chance(0.3))

    def free_op(self) -> None:
        if self.ops and self.chance(0.5):
            number = self.pick(self.ops)
            del self.ops[number]
            self.say("free_op", op=number)

    def reduction(self) -> tuple[int, Sequence[int] | None, bool]:
        """(operation, classes of the types that it is for, whether they must be predefined)."""
        if self.ops and self.chance(0.5):
            number = self.pick(self.ops)
            return number, {"sum": (1, 4, 7, 8), "affine": (2, 4, 8)}.get(self.ops[number]), False
        number = self.pick([0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
        classes = {3: (1, 3, 4, 7), 4: (1, 3, 4, 7), 5: (1, 3, 4, 7), 6: (7,), 7: PAIRS, 8: PAIRS}.get(number, NUMBERS)
        return number, classes, True

    def collective(self) -> None:
        neighbours = self.comm_of(("cart", "graph", "dist")) if self.chance(0.35) else None
        comm = self.any_comm() if neighbours is None else neighbours
        kind = self.pick(COLLECTIVES if neighbours is None else NEIGHBOUR_COLLECTIVES)
        mode = self.pick(["blocking", "blocking", "starting", "starting", "persistent"])
        op = None
        if kind in REDUCTIONS:
            op, classes, predefined = self.reduction()
            stype = rtype = self.pick([number for number, (cls, _) in self.types.items()
                                       if (classes is None or cls in classes) and (number < FIRST_TYPE or not predefined)])
        else:
            stype, rtype = self.type_pair()
        values: dict[str, Any] = {"comm": comm, "kind": kind, "mode": mode, "op": op, "stype": stype, "rtype": rtype, "root": self.random.randint(0, 7),
                  "side": self.random.randint(0, 1), "units": self.units(stype, 4), "in_place": self.chance(0.2),
                  "large": self.chance(0.25), "seed": self.step_seed()}
        if mode == "persistent" or (mode == "starting" and self.chance(0.6)):
            if self.next_slot >= 120:
                return
            values["id"] = self.slot()
            if mode == "persistent":
                self.persistent[values["id"]] = False
            else:
                self.slots.append(values["id"])
        self.say("coll", **values)

    # ---- attributes, error handlers, groups
    def make_key(self) -> None:
        number = self.next_key
        if number < 30:
            self.next_key += 1
            on = self.pick(["comm", "comm", "type"])
            self.keys[number] = on
            self.say("key", key=number, copy=self.random.randint(0, 3), deletes=self.chance(0.7), on=on)

    def attribute(self) -> None:
        if not self.keys:
            self.make_key()
            return
        number = self.pick(self.keys)
        known = [type_ for type_ in self.types if type_ >= FIRST_TYPE]
        verb = self.pick(["set_attribute", "set_attribute", "set_attribute", "get_attribute", "delete_attribute"])
        values = {"value": self.random.randint(1, 1000)} if verb == "set_attribute" else {}
        if self.keys[number] == "comm":
            self.say(verb, key=number, comm=self.any_comm(), **values)
        elif known:
            self.say(verb, key=number, type=self.pick(known), **values)

    def free_key(self) -> None:
        if self.keys and self.chance(0.5):
            number = self.pick(self.keys)
            del self.keys[number]
            self.say("free_key", key=number)

    def handler(self) -> None:
        verb = self.pick(["handler", "set_handler", "set_handler", "get_handler", "free_handler", "call_handler"])
        if verb == "handler" and self.next_handler < 30:
            self.handlers.append(self.next_handler)
            self.say("handler", handler=self.next_handler)
            self.next_handler += 1
        elif verb == "free_handler" and self.handlers:
            self.say(verb, handler=self.handlers.pop())
        elif verb == "set_handler":
            self.say(verb, comm=self.any_comm(), handler=self.pick([0, *self.handlers]))
        elif verb in ("get_handler", "call_handler"):
            self.say(verb, comm=self.any_comm())

    def mistake(self) -> None:
        self.say("mistake", comm=self.any_comm(), kind=self.pick(MISTAKES))

    def group(self) -> None:
        self.say("group", comm=self.any_comm(), stride=self.random.randint(0, 2), **{"with": self.any_comm()})

    def limits(self) -> None:
        self.say("limits")

    # ---- threads
    def threads(self) -> None:
        """Two threads, each with communicators of its own; what they make is the program's afterwards."""
        if self.thread or self.next_comm > 90:
            return
        while self.pending:
            self.finish_duplicate()
        own = [self.new_comm(verb, self.comm_of(("intra", "cart", "dist", "graph")) or 0, "intra") for verb in ("dup", "dup")]
        before, slots, persistent, types = self.comms, self.slots, self.persistent, dict(self.types)
        self.say("threads")
        after = dict(before)
        for number, comm in enumerate(own, 1):
            self.thread, self.comms = number, {1: "self", comm: "intra"}
            self.slots, self.persistent, self.types = [], {}, dict(types)
            for name in self.random.choices(IN_THREADS, k=self.random.randint(2, 7)):
                getattr(self, name)()
            after |= {known: kind for known, kind in self.comms.items() if known != comm or comm in self.comms}
            if comm not in self.comms:
                del after[comm]
            slots, persistent = slots + self.slots, persistent | self.persistent
        self.thread, self.comms, self.slots, self.persistent, self.types = 0, after, slots, persistent, types
        self.say("join")

    WEIGHTS = {
        "make_key": 2, "attribute": 7, "free_key": 1, "handler": 5, "mistake": 4, "group": 2, "limits": 0.2, "threads": 0.8,
        "collective": 26, "make_op": 3, "free_op": 1,
        "make_comm": 14, "finish_duplicate": 3, "end_comm": 3, "ask": 2, "name": 1, "make_type": 8, "free_type": 1, "p2p": 16,
        "p2p_init": 3, "start": 6, "complete": 7, "exchange": 4, "cancel": 1, "nobody": 1,
    }

    def make(self, steps: int) -> Lines:
        names, weights = zip(*self.WEIGHTS.items())
        for name in self.random.choices(names, weights, k=steps):
            getattr(self, name)()
        return self.lines


def program(seed: int, steps: int | None = None) -> Lines:
    """The lines of the program of this seed."""
    made = Program(seed)
    return made.make(steps or made.random.randint(8, 36))
