/* Every collective on a GPU's memory leaves there what it leaves in the host's. */
#include "../mpi/harness.h"
#include "device.h"

enum { most_ranks = 16 };

// clang-format off: one call a line
static int counts[most_ranks], places[most_ranks], bytes_at[most_ranks];
static MPI_Datatype types[most_ranks];
static MPI_Comm grid;

/* Of `n` ints per rank; -1 when there is no such number. */
static int call(int which, int* s, int* r, int n, MPI_Comm comm) {
    switch (which) {
        case 0:
            return MPI_Bcast(r, n, MPI_INT, 1, comm);
        case 1:
            return MPI_Reduce(s, r, n, MPI_INT, MPI_SUM, 1, comm);
        case 2:
            return MPI_Reduce(rank == 1 ? MPI_IN_PLACE : r, r, n, MPI_INT, MPI_SUM, 1, comm);
        case 3:
            return MPI_Allreduce(s, r, n, MPI_INT, MPI_SUM, comm);
        case 4:
            return MPI_Allreduce(MPI_IN_PLACE, r, n, MPI_INT, MPI_MAX, comm);
        case 5:
            return MPI_Gather(s, n, MPI_INT, r, n, MPI_INT, 1, comm);
        case 6:
            return MPI_Gatherv(s, counts[rank], MPI_INT, r, counts, places, MPI_INT, 0, comm);
        case 7:
            return MPI_Scatter(s, n, MPI_INT, r, n, MPI_INT, 1, comm);
        case 8:
            return MPI_Scatterv(s, counts, places, MPI_INT, r, counts[rank], MPI_INT, 0, comm);
        case 9:
            return MPI_Allgather(s, n, MPI_INT, r, n, MPI_INT, comm);
        case 10:
            return MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, r, n, MPI_INT, comm);
        case 11:
            return MPI_Allgatherv(s, counts[rank], MPI_INT, r, counts, places, MPI_INT, comm);
        case 12:
            return MPI_Alltoall(s, n, MPI_INT, r, n, MPI_INT, comm);
        case 13:
            return MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, r, n, MPI_INT, comm);
        case 14:
            return MPI_Alltoallv(s, counts, places, MPI_INT, r, counts, places, MPI_INT, comm);
        case 15:
            return MPI_Alltoallw(s, counts, bytes_at, types, r, counts, bytes_at, types, comm);
        case 16:
            return MPI_Reduce_scatter_block(s, r, n, MPI_INT, MPI_SUM, comm);
        case 17:
            return MPI_Reduce_scatter(s, r, counts, MPI_INT, MPI_SUM, comm);
        case 18:
            return MPI_Scan(s, r, n, MPI_INT, MPI_SUM, comm);
        case 19:
            return MPI_Exscan(s, r, n, MPI_INT, MPI_SUM, comm);
        case 20:
            return MPI_Neighbor_allgather(s, n, MPI_INT, r, n, MPI_INT, grid);
        case 21:
            return MPI_Neighbor_alltoall(s, n, MPI_INT, r, n, MPI_INT, grid);
        default:
            return -1;
    }
}

static int start(int which, int* s, int* r, int n, MPI_Comm comm, MPI_Request* request) {
    switch (which) {
        case 0:
            return MPI_Ibcast(r, n, MPI_INT, 1, comm, request);
        case 1:
            return MPI_Iallreduce(s, r, n, MPI_INT, MPI_SUM, comm, request);
        case 2:
            return MPI_Ialltoall(s, n, MPI_INT, r, n, MPI_INT, comm, request);
        case 3:
            return MPI_Igather(s, n, MPI_INT, r, n, MPI_INT, 1, comm, request);
#if HAVE_COUNT_VARIANTS
        case 4: {
            const int made = MPI_Allreduce_init(s, r, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, request);
            return made == MPI_SUCCESS ? MPI_Start(request) : made;
        }
#endif
        default:
            return -1;
    }
}

static int start_and_wait(int which, int* s, int* r, int n, MPI_Comm comm) {
    MPI_Request request;
    const int code = start(which, s, r, n, comm, &request);
    if (code != MPI_SUCCESS) return code;
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (request != MPI_REQUEST_NULL) OK(MPI_Request_free(&request));
    return MPI_SUCCESS;
}

static int compare(int (*one)(int, int*, int*, int, MPI_Comm), const char* kind, int which, int n) {
    const size_t ints = (size_t)n * (size_t)(size + 1) + 1, bytes = ints * sizeof(int);
    int *s = memory(bytes), *r = memory(bytes), *got = memory(bytes);
    for (size_t i = 0; i < ints; i++)
        s[i] = (int)(i + 1000 * (size_t)rank), r[i] = (int)(7 * i + (size_t)rank);
    int *ds = (int*)device_memory(bytes), *dr = (int*)device_memory(bytes);
    to_device(ds, s, bytes);
    to_device(dr, r, bytes);
    const int code = one(which, s, r, n, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS) {
        OK(one(which, ds, dr, n, MPI_COMM_WORLD));
        from_device(got, dr, bytes);
        CHECK(memcmp(got, r, bytes) == 0, "%s %d of %d ints differs on a GPU", kind, which, n);
        from_device(got, ds, bytes);
        CHECK(memcmp(got, s, bytes) == 0, "%s %d of %d ints changed what it sends", kind, which, n);
    }
    free(s), free(r), free(got), free_device(ds), free_device(dr);
    return code;
}

void collectives(void) {
    const int sizes_of_one[] = {3, 9000}, periods[1] = {1};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periods, 0, &grid));
    for (int k = 0; k < 2; k++) {
        const int n = sizes_of_one[k];
        for (int i = 0; i < size; i++) {
            counts[i] = n - 1;
            places[i] = n * i;
            bytes_at[i] = 4 * n * i;
            types[i] = MPI_INT;
        }
        for (int which = 0; which < 22; which++) OK(compare(call, "collective", which, n));
        for (int which = 0; compare(start_and_wait, "non-blocking collective", which, n) == MPI_SUCCESS;)
            which++;
    }
    OK(MPI_Comm_free(&grid));
}
