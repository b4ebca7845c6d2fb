"""What `mpisec sim` says of the all-gather paper's experiments. Microseconds."""

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpisec_bench.paper import SCHEMES, Table
from mpisec_lab.errors import LabError


@dataclass(frozen=True)
class Predicted:
    plain: float  # unencrypted MPI
    naive: float  # the paper's Naive
    times: dict[str, float]  # by scheme

    def best(self) -> str:
        return min(self.times, key=lambda scheme: self.times[scheme])

    def excess(self, scheme: str) -> float:
        """How much longer this scheme takes than the best: 0.1 is 10%."""
        return self.times[scheme] / self.times[self.best()] - 1


class Simulation:
    """Runs of `mpisec sim allgather` on one model, a name or a file.

    `ring`: what is known already of the unencrypted ring, size -> time; what is not is added.
    """

    def __init__(self, mpisec: Path, model: str, jobs: int = 2, ring: dict[int, float] | None = None) -> None:
        self._mpisec, self._model = mpisec, model
        self._pool = ThreadPoolExecutor(jobs)
        self._ring = {} if ring is None else ring

    def _run(self, table: Table, sizes: Sequence[int], schemes: Sequence[str], unencrypted: bool) -> dict[str, Any]:
        command = [
            str(self._mpisec), "sim", "allgather", "--ranks", str(table.ranks), "--nodes", str(table.nodes),
            "--placement", table.placement, "--size", ",".join(map(str, sizes)),
            "--algorithm", ",".join(schemes), "--model", str(self._model), "--json",
        ]  # fmt: skip
        if unencrypted:
            command.append("--unencrypted")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(done.stderr.strip())
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def start(self, table: Table, sizes: Sequence[int], schemes: Sequence[str], unencrypted: bool = False) -> Future[dict[str, Any]]:
        """A future of the document that `mpisec sim --json` prints."""
        return self._pool.submit(self._run, table, sizes, schemes, unencrypted)

    def predict(self, table: Table, schemes: Sequence[str] = SCHEMES) -> list[Predicted]:
        """A Predicted for each row of the table."""
        sizes = [row.bytes for row in table.rows]
        sealed = [self.start(table, sizes, [scheme]) for scheme in schemes]
        plain = self._plain(table, sizes)
        times = {scheme: by_size(future.result()) for scheme, future in zip(schemes, sealed, strict=True)}
        model = sealed[0].result()["model"]
        return [
            Predicted(
                plain[size],
                plain[size] + naive_crypto(model, table.ranks, size),
                {scheme: times[scheme][size] for scheme in schemes},
            )
            for size in sizes
        ]

    def _plain(self, table: Table, sizes: Sequence[int]) -> dict[int, float]:
        """MVAPICH as the paper describes it: recursive doubling for small messages, then a ring.

        Its doubling is C-RD's without encryption: with the ranks in block order a doubling in their own order would
        carry 16 x 112 KB through every node's link for blocks of 1 KB, three times of what the measured 56.58 us allow
        on 100 Gbit/s, so it must pair the nodes first.
        """
        small = [size for size in sizes if size < table.ring_from]
        large = [size for size in sizes if size >= table.ring_from]
        doubling = self.start(table, small, ["c-rd"], unencrypted=True)
        if table.placement == "block":
            new = [size for size in large if size not in self._ring]
            futures = [self.start(table, [size], ["o-ring"], unencrypted=True) for size in new]
            for future in futures:
                self._ring |= by_size(future.result())
            ring = {size: self._ring[size] for size in large}
        else:
            ring = {size: _ring_across(doubling.result()["model"], table, size) for size in large}
        return by_size(doubling.result()) | ring


def by_size(document: dict[str, Any]) -> dict[int, float]:
    """Size -> time of a document with one algorithm."""
    return {row["bytes"]: row["microseconds"] for row in document["results"]}


def _ring_across(model: dict[str, Any], table: Table, size: int) -> float:
    """A ring in the order of ranks that are placed cyclically: in every round all of a node's ranks use its link."""
    between = model["between"]
    busy = between["beta_ns_per_byte"] * 1e-3 * size * table.ranks / table.nodes
    return float((table.ranks - 1) * (between["alpha_us"] + busy))


def naive_crypto(model: dict[str, Any], ranks: int, size: int) -> float:
    """One block sealed, then, after an all-gather that has handled as many bytes, ranks - 1 opened."""
    total = (ranks - 1) * size
    cached = min(max(model.get("cache_kib", float("inf")) * 1024 - total, 0), total)
    opening, sealing = model["open"], model["seal"]
    rates = opening["beta_ns_per_byte"] * cached + opening["beyond_ns_per_byte"] * (total - cached)
    sealed = sealing["alpha_us"] + sealing["beta_ns_per_byte"] * 1e-3 * size
    return float(sealed + (ranks - 1) * opening["alpha_us"] + rates * 1e-3)
