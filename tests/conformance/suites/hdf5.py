"""HDF5's parallel example (slabs of a file that all ranks have open) and its parallel tests: contiguous, chunked and filtered datasets,
written and read independently and collectively, groups and attributes, compiled against Debian's HDF5."""

from harness.description import Program, Suite, package_version
from harness.sources import called, debian_source

PARTS = ("examples/*", "src/*", "test/*.c", "test/*.h", "testpar/*")
# What the tests share, of libh5test, which Debian has no package of.
SHARED = ("h5test", "testframe")
# The files that make up testphdf5 (testpar/Makefile.am); not every version has all.
UNITS = ("t_dset", "t_file", "t_file_image", "t_mdset", "t_ph5basic", "t_coll_chunk", "t_span_tree", "t_chunk_alloc", "t_filter_read", "t_prop",
         "t_coll_md_read", "t_oflush")
# Tests of testphdf5, one job each. One that writes and one that reads what it wrote go together.
CHUNKS = tuple(f"cchunk{number}" for number in range(1, 11))
GROUPS = {
    "files": ("mpiodup", "split", "props", "edpl", "alnbg1", "atomicity"),
    "datasets": ("idsetw", "idsetr", "cdsetw", "cdsetr", "zerodsetr", "compact", "fill", "null", "I/Omodeconf", "rrobjflushconf", "denseattr"),
    "extended": ("eidsetw", "eidsetr", "ecdsetw", "ecdsetr", "eidsetw2", "selnone", "calloc"),
    "filters": ("fltread", "cmpdsetr"),
    "groups": ("ndsetw", "ngrpw", "ngrpr", "cngrpw-ingrpr"),
    "chunked collective": CHUNKS,
    "irregular collective": ("ccontw", "ccontr", "cschunkw", "cschunkr", "ccchunkw", "ccchunkr"),
    "metadata": ("noselcollmdread", "MC_coll_MD_read", "LC_coll_MD_read", "tldsc", "actualio", "nocolcause", "lccio", "fiodc"),
}


def _tests(place, sources):
    """testphdf5."""
    program = place / "testphdf5"
    if not program.exists():
        # H5srcdir.h wants to know where the sources are; no test that is run here reads any.
        (place / "H5srcdir_str.h").write_text('const char *config_srcdir = ".";\n')
        units = [sources / f"test/{part}.c" for part in SHARED] + [sources / f"testpar/{part}.c" for part in ("testphdf5", *UNITS)]
        called(["h5pcc.openmpi", "-O1", "-w", f"-I{place}", f"-I{sources}/src", f"-I{sources}/test", f"-I{sources}/testpar", "-o", program,
                *(unit for unit in units if unit.exists())], place)
    return program


def programs(mpi, place):
    """The example of the sources, and the groups of testphdf5."""
    sources = debian_source("hdf5", *PARTS)
    example = place / "ph5example"
    if not example.exists():
        called(["h5pcc.openmpi", "-O1", "-w", "-o", example, sources / "examples/ph5example.c"], place)
    tests = _tests(place, sources)
    return [
        Program(name="ph5example", command=[example, "-f", "."]), Program(name="ph5example -c", command=[example, "-c", "-f", "."]),
        *(Program(name=f"testphdf5 {group}", timeout=240, command=[tests, *(word for test in names for word in ("-only", test)), "-m32", "-n32"])
          for group, names in GROUPS.items()),
    ]


SUITE = Suite(
    name="hdf5",
    origin="Debian source hdf5, package libhdf5-openmpi-dev",
    version=package_version("libhdf5-openmpi-dev"),
    mpis=("openmpi-4",),
    programs=programs,
    compared="exit status, and standard output's verdicts (“PHDF5 tests completed with no errors”, “All tests were successful”)",
    unordered=True,
    keep=(r"PHDF5", r"successful", r"error", r"FAILED", r"^Testing --"),
)
