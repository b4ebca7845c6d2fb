"""Slurm on the lab's nodes: a controller, a slurmd per node, munge (docs/slurm.md)."""

from mpisec_lab.slurm.cluster import SlurmCluster

__all__ = ["SlurmCluster"]
