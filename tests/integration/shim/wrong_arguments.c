// Collectives with arguments that MPI forbids. Each rank prints what it was told; the same program plain says
// what it should be told. Every call has a communicator of its own: after an error in a collective nothing is
// defined on it. Arguments: which calls, and the numbers of those to be made.
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { most = 64 };
static int rank, size, left[most], right[most], megabyte[1 << 18], seen;
static const char* wanted = "";
static MPI_Comm comm;

/// Whether the list ",0,4,11," has the number of this call.
static int is_wanted(void) {
    char number[16];
    snprintf(number, sizeof number, ",%d,", seen++);
    return strstr(wanted, number) != NULL;
}

/// Whether the class is MPIsec's, of messages that are not what was sent.
static int is_integrity_error(int class) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    MPI_Error_string(class, text, &length);
    return strstr(text, "MPIsec integrity error") != NULL;
}

static void told(const char* what, int code) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    const char* name = class == MPI_SUCCESS        ? "success"
                       : class == MPI_ERR_BUFFER   ? "MPI_ERR_BUFFER"
                       : class == MPI_ERR_ARG      ? "MPI_ERR_ARG"
                       : class == MPI_ERR_OP       ? "MPI_ERR_OP"
                       : class == MPI_ERR_COUNT    ? "MPI_ERR_COUNT"
                       : class == MPI_ERR_TYPE     ? "MPI_ERR_TYPE"
                       : class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE"
                       : class == MPI_ERR_OTHER    ? "MPI_ERR_OTHER"
                       : is_integrity_error(class) ? "integrity error"
                                                   : "another class";
    printf("rank %d: %s: %s\n", rank, what, name);
    fflush(stdout);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

// Communicators are freed by MPI_Finalize: on MPICH a message that nobody receives would be an error of
// MPI_Comm_free.
#define TOLD(call) \
    if (is_wanted()) told(#call, call)
#define TOLD_AT_END(call)                                                      \
    if (is_wanted()) {                                                         \
        MPI_Request request = MPI_REQUEST_NULL;                                \
        int code = call;                                                       \
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE); \
        told(#call, code);                                                     \
    }

static void overlapping(void) {
    int ones[most], places[most];
    for (int i = 0; i < size; ++i) ones[i] = 1, places[i] = i;
    int* own = left + rank;
    TOLD(MPI_Allreduce(left, left, 4, MPI_INT, MPI_SUM, comm));
    TOLD(MPI_Reduce(left, left, 4, MPI_INT, MPI_SUM, 0, comm));
    TOLD(MPI_Scan(left, left, 4, MPI_INT, MPI_SUM, comm));
    TOLD(MPI_Exscan(left, left, 4, MPI_INT, MPI_SUM, comm));
    TOLD(MPI_Reduce_scatter_block(left, left, 1, MPI_INT, MPI_SUM, comm));
    TOLD(MPI_Reduce_scatter(left, left, ones, MPI_INT, MPI_SUM, comm));
    TOLD(MPI_Gather(left, 1, MPI_INT, left, 1, MPI_INT, 0, comm));
    TOLD(MPI_Gatherv(left, 1, MPI_INT, left, ones, places, MPI_INT, 0, comm));
    TOLD(MPI_Scatter(left, 1, MPI_INT, left, 1, MPI_INT, 0, comm));
    TOLD(MPI_Scatterv(left, ones, places, MPI_INT, left, 1, MPI_INT, 0, comm));
    TOLD(MPI_Allgather(own, 1, MPI_INT, left, 1, MPI_INT, comm));
    TOLD(MPI_Allgather(left, 1, MPI_INT, left, 1, MPI_INT, comm));
    TOLD(MPI_Allgatherv(own, 1, MPI_INT, left, ones, places, MPI_INT, comm));
    TOLD(MPI_Allgatherv(left, 1, MPI_INT, left, ones, places, MPI_INT, comm));
    TOLD(MPI_Alltoall(left, 1, MPI_INT, left, 1, MPI_INT, comm));
    TOLD(MPI_Alltoallv(left, ones, places, MPI_INT, left, ones, places, MPI_INT, comm));
    TOLD(MPI_Allreduce(left, left, 0, MPI_INT, MPI_SUM, comm));
    TOLD(MPI_Allreduce(left, left + 1, 4, MPI_INT, MPI_SUM, comm));
    TOLD_AT_END(MPI_Iallreduce(left, left, 4, MPI_INT, MPI_SUM, comm, &request));
    TOLD_AT_END(MPI_Ialltoall(left, 1, MPI_INT, left, 1, MPI_INT, comm, &request));
}

static void unfitting(void) {
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    int ones[most];
    for (int i = 0; i < size; ++i) ones[i] = 1;
    TOLD(MPI_Allreduce(left, right, 4, MPI_BYTE, MPI_MAX, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_BYTE, MPI_BAND, comm));
    TOLD(MPI_Reduce(left, right, 4, MPI_BYTE, MPI_MAX, 0, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_FLOAT, MPI_BAND, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_FLOAT, MPI_LAND, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_CHAR, MPI_SUM, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_INT, MPI_MAXLOC, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_2INT, MPI_SUM, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_2INT, MPI_MAXLOC, comm));
    TOLD(MPI_Allreduce(left, right, 4, pair, MPI_SUM, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_INT, MPI_REPLACE, comm));
    TOLD(MPI_Scan(left, right, 4, MPI_BYTE, MPI_MAX, comm));
    TOLD(MPI_Exscan(left, right, 4, MPI_BYTE, MPI_MAX, comm));
    TOLD(MPI_Reduce_scatter_block(left, right, 1, MPI_BYTE, MPI_MAX, comm));
    TOLD(MPI_Reduce_scatter(left, right, ones, MPI_BYTE, MPI_MAX, comm));
    TOLD(MPI_Allreduce(left, right, 0, MPI_BYTE, MPI_MAX, comm));
    TOLD(MPI_Allreduce(left, right, 4, MPI_INT, MPI_OP_NULL, comm));
    TOLD_AT_END(MPI_Iallreduce(left, right, 4, MPI_BYTE, MPI_MAX, comm, &request));
    MPI_Type_free(&pair);
}

static void truncated(void) {
    int more = rank == 0 ? 8 : 4, fewer = rank == 0 ? 4 : 8;
    TOLD(MPI_Bcast(left, more, MPI_INT, 0, comm));
    TOLD(MPI_Bcast(left, fewer, MPI_INT, 0, comm));
    TOLD(MPI_Gather(left, fewer / 4, MPI_INT, right, 1, MPI_INT, 0, comm));
    TOLD(MPI_Scatter(left, more / 4, MPI_INT, right, 1, MPI_INT, 0, comm));
    more = rank == 0 ? 1 << 18 : 1, fewer = rank == 0 ? 1 : 1 << 18;
    TOLD(MPI_Bcast(megabyte, more, MPI_INT, 0, comm));
    TOLD(MPI_Bcast(megabyte, fewer, MPI_INT, 0, comm));
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc > 2) wanted = argv[2];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // where Open MPI raises some
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (!strcmp(argv[1], "overlapping")) overlapping();
    if (!strcmp(argv[1], "unfitting")) unfitting();
    if (!strcmp(argv[1], "truncated")) truncated();
    printf("rank %d: the end\n", rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000);  // without which MPICH 4.0 may hang in MPI_Finalize
    MPI_Finalize();
    return 0;
}
