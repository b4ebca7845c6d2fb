"""Benchmarks that need a cluster: plain and sealed MPI in one run on lab nodes (docs/benchmarking.md)."""

from mpisec_lab import python_version  # noqa: F401 (before all others)
