"""Random MPI programs, each run plain and sealed (docs/conformance-programs.md)."""
