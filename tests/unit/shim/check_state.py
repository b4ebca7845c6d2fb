"""check_state.py LIBRARY: what a preloaded library can write to is the one object of src/shim/process/process.hpp. Variables beside it
(at namespace scope, static ones of a class or a function, thread-locals) are the few that ALLOWED names."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

LIBRARY = Path(sys.argv[1])
PROCESS = "mpisec::shim::never_destroyed"
ALLOWED = {
    # Of each thread, and read by every message.
    "mpisec::shim::recent_communicator",
    "mpisec::shim::recent_type",
    "mpisec::shim::thread_mark",
    # Of each thread, and read by every call that fails.
    "mpisec::shim::handled",
    "mpisec::shim::wait_slot",
    "mpisec::shim::(anonymous namespace)::starts_here",
}
# Generated: the address of a procedure that is not in the standard, const after its first call.
EXTENSION = re.compile(r"(guard variable for )?PMPIX_\w+::extension")
# Sections that stay writable: not .data.rel.ro.
WRITABLE = {".data", ".bss", ".tdata", ".tbss"}


def writable_variables():
    """Names, demangled, of the shim's variables in sections that stay writable. Variables of the libraries linked in are theirs."""
    listed = subprocess.run(
        ["nm", "--demangle", "--format=sysv", LIBRARY], capture_output=True, text=True, check=True
    ).stdout
    for line in listed.splitlines():
        # The demangled name may hold a bar, but comes first; the section is last.
        fields = line.rsplit("|", 6)
        if len(fields) != 7 or fields[6].strip() not in WRITABLE:
            continue
        name = fields[0].strip()
        if "mpisec::shim::" in name or re.search(r"\bP?MPIX?_\w+::", name):
            yield name


class State(unittest.TestCase):
    def setUp(self):
        self.variables = set(writable_variables())

    def test_there_is_the_one_object(self):
        self.assertTrue(PROCESS in self.variables, "the library has been stripped, or the object renamed")

    def test_nothing_else_changes(self):
        others = {name for name in self.variables - {PROCESS} - ALLOWED if not EXTENSION.fullmatch(name)}
        self.assertEqual(
            sorted(others), [], "make these members of Process in src/shim/process/process.hpp, or constants"
        )

    def test_what_is_allowed_is_there(self):
        self.assertEqual(sorted(ALLOWED - self.variables), [], "gone: take it off ALLOWED")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
