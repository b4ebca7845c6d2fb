"""check_exports.py LIBRARY REAL_TABLE [SANITIZER]: a preloaded library stays out of the way of programs that are not MPI programs, shows
exactly the names it means to, and leaves no symbol for the program to supply."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import classes
import standard

LIBRARY = Path(sys.argv[1])
DECLARED = {"MPI_" + name for name in re.findall(r"MPISEC_PROCEDURE\((\w+)\)", Path(sys.argv[2]).read_text())}
SANITIZED = len(sys.argv) > 3
# Of the C library, taken in its place (src/shim/sockets/interposed.cpp).
SOCKETS = {"accept", "accept4", "close", "connect", "epoll_ctl", "epoll_wait", "readv", "recv", "recvmsg", "send", "sendmsg", "writev"}


def symbols(*options):
    """(kind, name) of the dynamic symbols that nm lists with these options, versions cut off."""
    text = subprocess.run(["nm", "-D", *options, LIBRARY], capture_output=True, text=True, check=True).stdout
    return [(line.split()[-2], line.split()[-1].split("@")[0]) for line in text.splitlines()]


class Exports(unittest.TestCase):
    def test_exactly_the_procedures_that_are_not_passed_through(self):
        class_of = classes.class_of(classes.load())
        wanted = {
            prefix + binding.name
            for bindings in standard.procedures().values()
            for binding in bindings
            if class_of[binding.base].wrapped and binding.name in DECLARED
            for prefix in ("", "P")
        }
        shown = {
            name
            for _, name in symbols("--defined-only")
            if not name.startswith(("mpisec_", "MPIX_", "PMPIX_"))
        }
        for_fortran = {name for name in shown if "win_get_attr" in name.lower() and name not in wanted}
        self.assertEqual(shown - wanted - for_fortran, SOCKETS, "shown beside what should be")
        self.assertEqual(sorted(wanted - shown), [], "not shown")

    @unittest.skipIf("-abi." in LIBRARY.name, "the standard's header has no extensions")
    def test_extensions_that_communicate_are_caught(self):
        shown = {name for _, name in symbols("--defined-only")}
        for name in ("MPIX_Comm_agree", "PMPIX_Comm_agree", "MPIX_Comm_shrink"):
            self.assertIn(name, shown)
        self.assertNotIn("MPIX_Comm_revoke", shown)
        for name in ("MPIX_Bcast_init", "PMPIX_Neighbor_alltoallw_init"):
            self.assertEqual(name in shown, "-openmpi." in LIBRARY.name, "Open MPI 4 has it")

    @unittest.skipIf(SANITIZED, "a sanitizer's runtime is asked of the program")
    def test_asks_nothing_of_the_program(self):
        text = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"NEEDED.*\[(.*)\]", text)
        self.assertEqual(
            [n for n in needed if not re.match(r"(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so", n)], []
        )
        # Bound now rather than on first call: a symbol that nobody has ends the program with its name.
        self.preload({"LD_BIND_NOW": "1"})

    @unittest.skipIf(SANITIZED, "a sanitizer's runtime must come first")
    def test_any_program_starts_with_it(self):
        self.preload({})

    def preload(self, environment):
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), **environment}
        done = subprocess.run(
            ["/bin/echo", "ok"], check=False, env=environment, capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok\n", ""))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
