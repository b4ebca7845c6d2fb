"""FFTW's own benchmark program, which verifies distributed transforms against the definition (linearity, impulses, shifts). It is compiled from
the sources and linked with Debian's library."""

from harness.description import Program, Suite, package_version
from harness.sources import called, debian_source

from mpisec_lab.mpis import find_mpi

# In and out of place, complex and real, one to four dimensions, even, odd and prime sizes, transposed, several at once.
PROBLEMS = ("ocf64", "icb120", "ocf97x11", "icf30x28", "ocb12x13x14", "icf8x9x7", "orf24x18", "irb16x20", "orf9x10x12", "ocf[16x24", "ocf]24x16",
            "ocf128x64", "icb6x7x8x9", "ok20e00x14o11")
CONFIG = ("STDINT_H", "STDLIB_H", "STRING_H", "UNISTD_H", "SYS_TIME_H", "GETTIMEOFDAY", "MEMALIGN", "MALLOC_H", "MPI")
SIZES = "#define BENCHFFT_DOUBLE 1\n#define SIZEOF_INT 4\n#define SIZEOF_LONG 8\n#define SIZEOF_PTRDIFF_T 8\n"


def built(mpi, place):
    """mpi-bench. FFTW's own configure would build the library too, for minutes."""
    program = place / "mpi-bench"
    if program.exists():
        return program
    source = debian_source("fftw3")
    (place / "config.h").write_text("".join(f"#define HAVE_{name} 1\n" for name in CONFIG) + SIZES)
    (place / "hook.c").write_text("void install_hook(void) {}\nvoid uninstall_hook(void) {}\n")  # FFTW's looks inside of its library
    compiler = [*find_mpi(mpi).compiler_for("c"), "-O1", "-w", "-DHAVE_CONFIG_H", f"-I{place}", f"-I{source}",
                *(f"-I{source / part}" for part in ("libbench2", "tests", "api", "mpi"))]
    objects = place / "objects"
    objects.mkdir(exist_ok=True)
    called([*compiler, "-c", *sorted((source / "libbench2").glob("*.c"))], objects)
    called(["ar", "rcs", "libbench2.a", *sorted(objects.glob("*.o"))], place)
    called([*compiler, "-o", program, source / "mpi/mpi-bench.c", source / "tests/fftw-bench.c", "hook.c", "libbench2.a", "-lfftw3_mpi", "-lfftw3", "-lm"],
           place)
    return program


def programs(mpi, place):
    """A job per problem. The random input has a fixed seed, and the plan is not chosen by measured times."""
    program = built(mpi, place)
    return [Program(name=problem, command=[program, "--user-option=estimate", "--random-seed=1", "--verbose=1", "--verify-rounds=2",
                                           "--verify", problem]) for problem in PROBLEMS]


SUITE = Suite(
    name="fftw",
    origin="Debian source fftw3, package libfftw3-mpi-dev",
    version=package_version("libfftw3-mpi-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="standard output: the problem and the errors found by the verification",
    tolerance=10,
)
