"""Random MPI programs, each run plain and sealed (docs/programs.md)."""
