"""A cluster on one machine: network namespaces as nodes, joined by a bridge, with MPI launched across them.

Nothing here runs in the path of a job: the lab starts processes, watches the wire and cleans up
(docs/lab.md).
"""

from mpisec_lab import python_version  # noqa: F401 (before all others)
from mpisec_lab.cluster import Cluster, Result
from mpisec_lab.errors import LabError
from mpisec_lab.mpis import MPIS, find_mpi

__all__ = ["MPIS", "Cluster", "LabError", "Result", "find_mpi"]
