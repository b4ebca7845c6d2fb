"""Rank 0 sends a marker many times to the last rank, alone and together, which says how often it arrived right. The marker is argument 1
backwards: the launcher sends arguments in clear."""

import sys

from mpi4py import MPI

marker, repeats = sys.argv[1][::-1].encode(), int(sys.argv[2])
world = MPI.COMM_WORLD
last = world.size - 1
received = bytearray(len(marker) * repeats)
if world.rank == 0:
    for _ in range(repeats):
        world.Send(marker, last)
    world.Send(marker * repeats, last)
elif world.rank == last:
    right, one = 0, bytearray(len(marker))
    for _ in range(repeats):
        world.Recv(one, 0)
        right += bytes(one) == marker
    world.Recv(received, 0)
    print(f"right {right + bytes(received).count(marker)} of {2 * repeats}, sum of ranks {sum(range(world.size))}", flush=True)
total = world.allreduce(world.rank)
assert total == sum(range(world.size))
