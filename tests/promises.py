"""Which tests keep which promise: python tests/promises.py prints promise, what it says in a word, and its tests; it fails for a promise
without one.

A test names its promises (S1 … S8, M1 … M14) in its docstring (Python), or in the comment before it or at the head of its file (C, C++)."""

import ast
import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PROMISES = {
    "S1": "nothing leaves a node unsealed", "S2": "received is what was sent, or an error", "S3": "a message is accepted once",
    "S4": "no nonce twice", "S5": "keys for one job, kept safe", "S6": "keys are renewed", "S7": "disagreement refuses to start",
    "S8": "an end within a bounded time", "M1": "same node: plain", "M2": "any source", "M3": "statuses and truncation",
    "M4": "probe and order", "M5": "progress", "M6": "requests", "M7": "send buffers", "M8": "datatypes", "M9": "send modes",
    "M10": "threads", "M11": "constructors, sessions, worlds", "M12": "large counts", "M13": "Fortran and mpi4py", "M14": "nothing is left",
}
TAG = re.compile(r"(?<![\w.])([SM])(\d{1,2})\b(?!\.\d)")
CPP_TEST = re.compile(r"((?:^[ \t]*//[^\n]*\n)*)^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def tags(text):
    """The promises that a text names."""
    return {kind + number for kind, number in TAG.findall(text)} & PROMISES.keys()


def python_tests(path):
    """(test, promises) of a pytest file; the module's docstring counts for tests that name none."""
    tree = ast.parse(path.read_text())
    everywhere = tags(ast.get_docstring(tree) or "")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, tags(ast.get_docstring(node) or "") or everywhere


def cpp_tests(path):
    """(test, promises) of a GoogleTest file; its head comment counts for tests that name none."""
    text = path.read_text()
    head = re.match(r"(?://[^\n]*\n)*", text).group()
    for comment, suite, name in CPP_TEST.findall(text):
        yield f"{suite}.{name}", tags(comment) or tags(head)


def rules(path):
    """A rule (integration/mpi/rules): its file and the promises of its head comment."""
    yield path.name, tags(re.match(r"/\*.*?\*/", path.read_text(), re.DOTALL).group())


def collect():
    """{promise: [file: test]}"""
    table = {promise: [] for promise in PROMISES}
    readers = [("**/test_*.py", python_tests), ("**/test_*.cpp", cpp_tests), ("integration/mpi/rules/*.c", rules), ("integration/mpi/leftovers.c", rules)]
    for pattern, reader in readers:
        for path in sorted(TESTS.glob(pattern)):
            for test, promises in reader(path):
                for promise in promises:
                    table[promise].append(f"{path.relative_to(TESTS)}: {test}")
    return table


def main():
    """Prints the table; the number of empty rows is the exit status."""
    table = collect()
    for promise, found in table.items():
        print(f"{promise:4}{PROMISES[promise]}: {len(found)} tests")
        for test in found if "-v" in sys.argv else found[:4]:
            print(f"        {test}")
        if not found:
            print("        NONE")
    return sum(not found for found in table.values())


if __name__ == "__main__":
    sys.exit(main())
