/* Preloaded into a plain kernel: one bit of one message is wrong when it arrives, as nothing but the kernel
 * would notice. CORRUPT=N: rank 1's N-th message after the first barrier, where the kernels' clock starts.
 * The bit is the highest of a double's mantissa, or of little weight in an integer, in the middle of what is
 * sent. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int started;
static long messages;

static const void* changed(const void* data, long count, MPI_Datatype type) {
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Type_size(type, &size);
    if (!started || rank != 1 || count == 0 || ++messages != atol(getenv("CORRUPT"))) return data;
    char* copy = malloc((size_t)(count * size)); /* never freed: it may be on its way until the end */
    memcpy(copy, data, (size_t)(count * size));
    copy[count / 2 * size + (size >= 8 ? 6 : 0)] ^= 8;
    return copy;
}

int MPI_Barrier(MPI_Comm comm) {
    started = 1;
    return PMPI_Barrier(comm);
}

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    return PMPI_Send(changed(data, count, type), count, type, to, tag, comm);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
    return PMPI_Isend(changed(data, count, type), count, type, to, tag, comm, request);
}

int MPI_Alltoall(const void* data, int count, MPI_Datatype type, void* in, int in_count, MPI_Datatype in_type,
                 MPI_Comm comm) {
    int ranks; /* counts of one element each are not changed: a program that believed them would not end in
                  order */
    PMPI_Comm_size(comm, &ranks);
    const void* sent = count > 1 ? changed(data, (long)count * ranks, type) : data;
    return PMPI_Alltoall(sent, count, type, in, in_count, in_type, comm);
}

int MPI_Alltoallv(const void* data, const int* counts, const int* at, MPI_Datatype type, void* in,
                  const int* in_counts, const int* in_at, MPI_Datatype in_type, MPI_Comm comm) {
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    const void* sent = changed(data, at[ranks - 1] + counts[ranks - 1], type);
    return PMPI_Alltoallv(sent, counts, at, type, in, in_counts, in_at, in_type, comm);
}
