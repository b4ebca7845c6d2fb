"""Runs one program of a suite, plain and sealed, each time in a fresh directory."""

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

from harness.description import Case
from harness.judge import judge

# Plain once more, with collectives that add in another order.
OTHER_SUMMATION = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_allreduce_algorithm": "1",
    "OMPI_MCA_coll_tuned_reduce_algorithm": "1",
    "MPIR_CVAR_ENABLE_SMP_COLLECTIVES": "0",
}
# Several ranks share a core of the lab: a waiting rank lets others run.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Job:
    """A program on one MPI. run: Cluster.run with `nodes`, or the fixture of tests/conftest.py."""

    def __init__(self, run, suite, program, mpi, directory):
        self._run, self._suite, self._program, self._mpi = run, suite, program, mpi
        self._directory = Path(directory)

    def outcomes(self):
        """{case: (outcome, detail)} and the number of messages sealed, None when it was not run sealed. Plain is run again only when sealed differs from it."""
        plains = [self._once("plain", {})]
        if all("ran out of time" in case.said for case in plains[0].values()):
            return dict.fromkeys(plains[0], ("failed plain too", f"ran out of {self._program.timeout} s")), None
        sealed = self._once("sealed", {})
        messages = self._sealed_messages()
        judged = self._judge(plains, sealed)
        if any(outcome in ("differs", "excepted") for outcome, _ in judged.values()):
            plains.append(self._once("plain-again", {}))
            plains.append(self._once("plain-otherwise", OTHER_SUMMATION))
            judged = self._judge(plains, sealed)
        if any(outcome == "differs" for outcome, _ in judged.values()):
            judged = self._reproduced(judged, plains)
        if messages == 0:
            judged = {name: ("nothing sealed" if outcome == "same" else outcome, detail) for name, (outcome, detail) in judged.items()}
        return judged, messages

    def _reproduced(self, judged, plains):
        """A difference stays one; a second sealed run says whether it comes every time."""
        again = self._judge(plains, self._once("sealed-again", {}))
        note = {True: " (twice of two runs)", False: " (once of two runs)"}
        return {
            name: (outcome, detail + (note[again.get(name, ("differs",))[0] == "differs"] if outcome == "differs" else ""))
            for name, (outcome, detail) in judged.items()
        }

    def _judge(self, plains, sealed):
        """Every case that the first plain run reports."""
        suite = replace(self._suite, exceptions=(*self._suite.exceptions, *self._program.exceptions))
        return {name: judge(name, [plain[name] for plain in plains if name in plain], sealed.get(name), suite) for name in plains[0]}

    def _once(self, how, more_env):
        program, directory = self._program, self._directory / how
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        for name, content in program.files.items():
            _put(content, directory / name)
        plain = how.startswith("plain")
        env = YIELD | dict(program.env) | more_env
        if not plain:
            env |= {"MPISEC_STATS": f"json:{self._directory}/stats.%r"} | dict(program.sealed_env)
        before = os.getcwd()
        os.chdir(directory)
        try:
            result = self._run([str(word) for word in program.command], nodes=program.nodes or self._suite.nodes,
                               ranks=program.ranks or self._suite.ranks_on(self._mpi), mpi=self._mpi, plain=plain, env=env, launcher=program.launcher,
                               timeout=program.timeout * (1 if plain else 2))
        finally:
            os.chdir(before)
        (directory / "stdout").write_text(result.stdout)
        (directory / "stderr").write_text(result.stderr)
        return (program.cases or self._whole)(directory, result)

    def _whole(self, directory, result):
        """The program as one case: its output and the files that it wrote."""
        texts = [result.stdout]
        for name in self._program.outputs:
            file = directory / name
            texts.append(f"--- {name}\n" + (file.read_text(errors="replace") if file.exists() else "was not written"))
        return {self._program.name: Case(result.returncode == 0, "\n".join(texts), explanation(result))}

    def _sealed_messages(self):
        """Of the program: without what MPIsec sends by itself when a job that sends nothing ends, two barriers among nodes."""
        files = list(self._directory.glob("stats.*"))
        total = 0
        for file in files:
            counts = json.loads(file.read_text())
            total += sum(counts[kind]["messages"] for kind in counts if kind.startswith("seal_"))
            file.unlink()
        nodes = min(self._program.nodes or self._suite.nodes, self._program.ranks or self._suite.ranks_on(self._mpi))
        return max(0, total - 2 * nodes * math.ceil(math.log2(nodes)) if files else 0)


def explanation(result):
    """A run's output with how it ended, for judge and for reports."""
    ending = "ran out of time" if result.timed_out else f"ended with status {result.returncode}"
    return f"{result.stdout}\n{result.stderr}\n{ending}"


def _put(content, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, Path):
        target.write_text(content)
    elif content.is_dir():
        shutil.copytree(content, target)
    else:
        shutil.copy(content, target)
