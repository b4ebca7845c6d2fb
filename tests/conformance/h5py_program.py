"""What h5py's documentation on parallel HDF5 shows, as one program: groups and attributes made by all ranks, contiguous, chunked and
compressed datasets, written and read independently and collectively, in slabs, in single columns and in every n-th row. Each rank reads
what others wrote. Rank 0 says the SHA-256 of every dataset.

    h5py_program.py FILE"""

import hashlib
import sys

import h5py
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
ROWS, COLUMNS = 64 * size, 96


def value(row, column, salt):
    """Of an element, so that every rank knows what the others write."""
    return (row * 1000003 + column * 10007 + salt * 101) % 65521


def expected(salt, rows=ROWS):
    return value(*np.mgrid[0:rows, 0:COLUMNS], salt).astype("f8")


def slabs(dataset, salt, collective):
    """Each rank a slab of rows."""
    mine = slice(rank * ROWS // size, (rank + 1) * ROWS // size)
    if collective:
        with dataset.collective:
            dataset[mine] = expected(salt)[mine]
    else:
        dataset[mine] = expected(salt)[mine]


def interleaved(dataset, salt):
    """Every size-th row, collectively: pieces of all ranks lie between each other's."""
    with dataset.collective:
        dataset[rank::size] = expected(salt)[rank::size]


def columns(dataset, salt):
    """Columns one after the other, each rank its own, collectively."""
    with dataset.collective:
        for column in range(rank, COLUMNS - COLUMNS % size, size):
            dataset[:, column] = expected(salt)[:, column]


WAYS = {
    "contiguous": ({}, lambda data, salt: slabs(data, salt, collective=False)),
    "contiguous collective": ({}, lambda data, salt: slabs(data, salt, collective=True)),
    "chunked": ({"chunks": (16, 32)}, lambda data, salt: slabs(data, salt, collective=False)),
    "chunked collective": ({"chunks": (24, 40)}, lambda data, salt: slabs(data, salt, collective=True)),
    "chunked interleaved": ({"chunks": (16, 32)}, interleaved),
    "interleaved": ({}, interleaved),
    "columns": ({"chunks": (ROWS, 1)}, columns),
    "extended": ({"chunks": (16, 32), "maxshape": (None, COLUMNS)}, interleaved),
    "compressed": ({"chunks": (24, 40), "compression": "gzip"}, lambda data, salt: slabs(data, salt, collective=True)),
    "shuffled": ({"chunks": (16, 32), "shuffle": True, "fletcher32": True}, interleaved),
}


def main():
    """See above."""
    with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
        for salt, (name, (options, write)) in enumerate(WAYS.items()):
            group = file.create_group(name)
            group.attrs["salt"] = salt
            dataset = group.create_dataset("data", (ROWS, COLUMNS), dtype="f8", **options)
            dataset.attrs["ranks"] = np.arange(size)
            write(dataset, salt)
        file.atomic = True
        file["chunked/data"][rank] = expected(99)[rank]
        file.flush()
    with h5py.File(sys.argv[1], "r", driver="mpio", comm=comm) as file:
        for salt, name in enumerate(WAYS):
            dataset = file[name]["data"]
            assert file[name].attrs["salt"] == salt and list(dataset.attrs["ranks"]) == list(range(size))
            with dataset.collective:
                whole = dataset[:]
            wanted = expected(salt)
            if name == "chunked":
                wanted[:size] = expected(99)[:size]
            if name == "columns":
                wanted[:, COLUMNS - COLUMNS % size :] = 0
            assert np.array_equal(whole, wanted), f"rank {rank}: {name} is not what was written"
            assert np.array_equal(dataset[(rank + 1) % size :: size], wanted[(rank + 1) % size :: size]), name
            if rank == 0:
                print(name, hashlib.sha256(whole.tobytes()).hexdigest())


main()
