"""What the page quotes of a program's output: its end, without what launchers add to it and without this machine's directories."""

import re

LONGEST = 180
# Of mpiexec (Hydra, Open MPI 4) and prterun (Open MPI 5), in text whose white space is single spaces.
_LAUNCHERS = (
    r"-{5,}",
    r"\*{3} ?",
    r"\w*run has exited due to process rank.*?\(as reported here\)\.",
    r"(?:mpiexec\S*|\w*run) (?:has )?detected that one or more processes exited with non-zero status.*?Exit code: -?\d+",
    r"Primary job terminated normally, but.*?(?:job has been|was) aborted\.",
    r"MPI_ABORT was invoked.{0,400}?exactly when Open MPI kills them\.",
    r"MPI_ABORT was invoked on rank \d+ in communicator \S+(?: Proc: \S+)?(?: Errorcode: -?\d+| with errorcode -?\d+\.)?",
    r"\[[^\]]*\] \d+ more process(?:es)? ha(?:s|ve) sent help message \S+ / \S+",
    r"\[[^\]]*\] Set MCA parameter \S+ to 0 to see all help / error messages",
    r"Abort\(-?\d+\) on node \d+ \(rank \d+ in comm \S+\): (?=application called MPI_Abort)",
    r"application called MPI_Abort\(\S+, -?\d+\) - process \d+",
    r"An MPI communication peer process has unexpectedly disconnected\..{0,900}?Peer host: \S+",
    r"\[[^\]]*\] (?:An error occurred in Socket closed|reported by process \[[^\]]*\]|on a NULL communicator|Unknown error)",
    r"\[[^\]]*\] MPI_ERRORS_ARE_FATAL.{0,200}?your MPI job as well\)",
)
_BUILT = re.compile(r"(?:/[\w.+-]+)+/build/conformance/(?:sources/)?[\w.+-]+/(?:build/|unpacked/|programs/|jobs/)?")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def cleaned(text):
    """On one line, without what says nothing of the program, and what several ranks say once."""
    text = "\n".join(dict.fromkeys(text.splitlines()))
    text = " ".join(_CONTROL.sub(" ", _ADDRESS.sub("0x…", _BUILT.sub("", text))).split())
    for pattern in _LAUNCHERS:
        text = " ".join(re.sub(pattern, " ", text).split())
    return text


def excerpt(text):
    """The end of it."""
    text = cleaned(text)
    if len(text) <= LONGEST:
        return text
    return "… " + text[-LONGEST:].partition(" ")[2]


def line(text):
    """The beginning of a line that differs, quoted."""
    text = cleaned(text)
    return repr(text if len(text) <= LONGEST // 2 else text[: LONGEST // 2] + " …")
