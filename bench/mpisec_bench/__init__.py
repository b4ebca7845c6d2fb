"""Benchmarks that need a cluster: plain and sealed MPI in one run on lab nodes (docs/benchmarking.md)."""
