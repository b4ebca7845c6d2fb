"""MrBayes: Bayesian inference of phylogeny by Markov chains that swap their temperatures among ranks. It is compiled from Debian's sources, for the
program of Debian's package mrbayes-mpi is linked to no MPI: each of its ranks does the whole work by itself."""

import random
import re

from harness.description import Program, Suite
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

# What `configure --with-mpi --without-beagle` would find, for the sources undefine MPI_ENABLED without a configuration.
CONFIGURATION = """#define PACKAGE_NAME "MrBayes"
#define PACKAGE_VERSION "{version}"
#define HOST_CPU "x86_64"
#define UNIX_VERSION 1
#define HAVE_UNISTD_H 1
#define SSE_ENABLED 1
#define MPI_ENABLED 1
"""
# The model and the chains: on each rank two chains of two runs, one chain of a run that swaps in every generation, two chains of one run.
ANALYSES = {
    "two runs of four chains": ("nst=6 rates=gamma", "ngen=4000 nruns=2 nchains=4"),
    "one run, swaps in every generation": ("nst=2 rates=invgamma", "ngen=3000 nruns=1 nchains=4 swapfreq=1 nswaps=2"),
    "one run of eight chains": ("nst=1 rates=equal", "ngen=3000 nruns=1 nchains=8 temp=0.2"),
}
BASES, SITES = "ACGT", 240


def _alignment():
    """Eight made-up taxa that stem from one sequence, as a NEXUS data block."""
    numbers = random.Random(1993)

    def mutated(sequence, rate):
        return "".join(numbers.choice(BASES) if numbers.random() < rate else base for base in sequence)

    sequences = ["".join(numbers.choice(BASES) for _ in range(SITES))]
    for rate in (0.1, 0.08, 0.06):  # three generations, each taxon with two children
        sequences = [mutated(sequence, rate) for sequence in sequences for _ in range(2)]
    rows = "\n".join(f"t{number} {sequence}" for number, sequence in enumerate(sequences))
    return f"#NEXUS\nbegin data;\ndimensions ntax={len(sequences)} nchar={SITES};\nformat datatype=dna missing=? gap=-;\nmatrix\n{rows}\n;\nend;\n"


def _version(mpi):
    return re.search(r"AC_INIT\(\[MrBayes\],\[([^\]]+)\]", (debian_source("mrbayes") / "configure.ac").read_text()).group(1)


def _compiled(mpi, place):
    """The program."""
    program = place / "mb-mpi"
    if not program.exists():
        (place / "config.h").write_text(CONFIGURATION.format(version=_version(mpi)))
        sources = sorted((debian_source("mrbayes") / "src").glob("*.c"))
        called([*find_mpi(mpi).compiler, "-DHAVE_CONFIG_H", f"-I{place}", "-O1", "-w", "-o", program, *sources, "-lm"], place)
    return program


def programs(mpi, place):
    """A job per analysis: a chain, then the summaries of its parameters and trees."""
    program, found = _compiled(mpi, place), []
    for name, (model, chains) in ANALYSES.items():
        commands = ["set autoclose=yes nowarn=yes seed=4711 swapseed=1234", f"lset {model}", f"mcmcp {chains} samplefreq=100 printfreq=200 diagnfreq=500",
                    "mcmcp checkpoint=no filename=chain", "mcmc", "sump", "sumt"]
        text = _alignment() + "begin mrbayes;\n" + "".join(f"{command};\n" for command in commands) + "end;\n"
        runs = [f"run{number}." for number in (1, 2)] if "nruns=2" in chains else [""]
        outputs = [f"chain.{run}{kind}" for run in runs for kind in ("p", "t")]
        found.append(Program(name=name, command=[program, "data.nex"], files={"data.nex": text}, outputs=outputs, timeout=120))
    return found


SUITE = Suite(
    name="mrbayes",
    origin="Debian source mrbayes",
    version=_version,
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output (likelihoods, acceptance of moves and swaps, summaries, trees) and all sampled parameters and trees; not times and what is "
    "made from the time of day: stamps and the seed of start values that are not used",
    drop=(r"^\[ID: ", r"^MCMC stamp", r"^Seed \(for generating", r"^Analysis (used|completed)"),
    replace=((r"-- \d+:\d\d:\d\d\s*$", ""),),
)
