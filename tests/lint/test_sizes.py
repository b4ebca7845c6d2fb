"""What `make lint` says of long functions and long lists of parameters (tools/sizes.py)."""

import pytest

TOOL = "sizes.py"
SEVEN = "int a, int b, int c, int d, int e, int f, int g"


def test_no_function_of_the_tree_is_too_large(judged):
    assert judged() == (0, ["sizes: 0 functions are too long or take too many parameters"])


@pytest.mark.parametrize("file, text, verdict", [
    ("shim/a.cpp", f"int most({SEVEN}) {{ return 0; }}\n", "most takes 7 parameters"),
    ("shim/a.cpp", f"int most({SEVEN.rpartition(',')[0]}) {{ return 0; }}\n", None),
    ("shim/a.cpp", "int f() {\n" + "    g();\n" * 59 + "}\n", "f has 61 lines"),
    ("shim/a.cpp", "int f() {\n" + "    g();\n" * 58 + "}\n", None),
    ("shim/a.cpp", "int MPI_Send() {\n" + "    g();\n" * 59 + "}\n", "MPI_Send has 61 lines"),
    ("shim/a.cpp", f"namespace n {{ int Gather({SEVEN}) {{ return 0; }} }}\n", None),  # MPI_Gather's
    ("shim/a.cpp", f"namespace n {{ int gather({SEVEN}) {{ return 0; }} }}\n", "n::gather takes 7 parameters"),
    ("plugins/a.cpp", f"int seal({SEVEN}) {{ return 0; }}\n", None),
    ("shim/a.cpp", f"int seal({SEVEN}) {{ return 0; }}\n", "seal takes 7 parameters"),
    ("plugins/a.cpp", f"int run({SEVEN}) {{ return 0; }}\n", "run takes 7 parameters"),
    ("lab/a.py", "def f(a, b, c, d, e, *, g=1):\n    pass\n", None),
    ("lab/a.py", "def f(a, b, c, d, e, *, g=1, h=2):\n    pass\n", "f takes 7 parameters"),
    ("lab/a.py", "class C:\n    def f(self, a, b, c, d, e, g):\n        pass\n", None),
    ("lab/a.py", "def Gather(a, b, c, d, e, f, g):\n    pass\n", "Gather takes 7 parameters"),
    ("lab/a.py", "def f():\n" + "    g()\n" * 60, "f has 61 lines"),
])
def test_a_function(judged, tmp_path, file, text, verdict):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    status, lines = judged(tmp_path)
    assert lines[:-1] == ([f"{path}:1: {verdict}"] if verdict else [])
    assert status == (1 if verdict else 0)
