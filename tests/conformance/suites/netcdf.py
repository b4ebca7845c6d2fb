"""NetCDF-4's parallel tests, compiled against Debian's netCDF for MPI: files that all ranks have open, through HDF5, written and read
independently and collectively, compressed too."""

from pathlib import Path

from harness.description import Program, Suite, package_version
from harness.sources import called, debian_source

# With the ranks that nc_test4/run_par_test.sh gives them, four at most.
TESTS = {"tst_mpi_parallel": 4, "tst_parallel": 4, "tst_parallel3": 4, "tst_parallel4": 4, "tst_parallel5": 4, "tst_parallel6": 4,
         "tst_parallel_zlib": 4, "tst_parallel_compress": 4, "tst_nc4perf": 4, "tst_simplerw_coll_r": 4, "tst_mode": 2, "tst_quantize_par": 4}


# What netCDF's configure writes into config.h, by default.
CONFIG = """#include <stdint.h>
#define TEMP_LARGE "."
#define USE_HDF5 1
#define USE_NETCDF4 1
#define USE_PARALLEL 1
#define USE_PARALLEL4 1
#define CHUNK_CACHE_SIZE 16777216
#define CHUNK_CACHE_NELEMS 4133
#define CHUNK_CACHE_PREEMPTION 0.75
"""
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
FLAGS = (f"-I{LIBRARIES}/netcdf/mpi/include", "-I/usr/include/hdf5/openmpi", f"-L{LIBRARIES}/netcdf/mpi", f"-L{LIBRARIES}/hdf5/openmpi")


def programs(mpi, place):
    """A test each."""
    sources, found = debian_source("netcdf", "nc_test4/*.c", "include/*", "nc_test/*.h"), []
    (place / "config.h").write_text(CONFIG)
    for name, ranks in TESTS.items():
        source, program = sources / f"nc_test4/{name}.c", place / name
        if not source.exists():
            continue
        if not program.exists():
            called(["mpicc.openmpi", "-O1", "-w", "-include", place / "config.h", f"-I{place}", *FLAGS, f"-I{sources}/include", f"-I{sources}/nc_test4",
                    "-o", program, source, "-lnetcdf_mpi", "-lhdf5_openmpi", "-lm"], place)
        found.append(Program(name=name, command=[program], ranks=ranks))
    return found


SUITE = Suite(
    name="netcdf",
    origin="Debian source netcdf, package libnetcdf-mpi-dev",
    version=package_version("libnetcdf-mpi-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="exit status, and standard output's verdicts",
    unordered=True,
    keep=(r"SUCCESS", r"[Oo]k\.", r"FAILED", r"[Ee]rror"),
)
