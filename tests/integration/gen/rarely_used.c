/* Sealed procedures that no other test's program happens to use, each once. */
#include <mpi.h>
#include <stdio.h>

static int rank, size;
#define CHECK(condition, ...)                                             \
    do {                                                                  \
        if (!(condition)) {                                               \
            fprintf(stderr, "FAILED line %d, rank %d: ", __LINE__, rank); \
            fprintf(stderr, __VA_ARGS__);                                 \
            fputc('\n', stderr);                                          \
            MPI_Abort(MPI_COMM_WORLD, 1);                                 \
        }                                                                 \
    } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

/* To the next rank and from the one before, so that some messages cross nodes. */
static void ring(MPI_Comm comm) {
    int me, n, out, in = -1;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    out = 100 + me;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % n, 1, &in, 1, MPI_INT, (me - 1 + n) % n, 1, comm,
                    MPI_STATUS_IGNORE));
    CHECK(in == 100 + (me - 1 + n) % n, "got %d", in);
}

static void test_constructors(void) {
    MPI_Comm comm;
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Request request;
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    ring(comm);
    OK(MPI_Comm_disconnect(&comm));
    CHECK(comm == MPI_COMM_NULL, "the handle outlived the communicator");
#endif
    int from = (rank - 1 + size) % size, to = (rank + 1) % size;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &comm));
    int source, destination, weight;
    OK(MPI_Dist_graph_neighbors(comm, 1, &source, &weight, 1, &destination, &weight));
    CHECK(source == from && destination == to, "neighbours %d and %d", source, destination);
    ring(comm);
    OK(MPI_Comm_disconnect(&comm));
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
static void test_statuses_of_many(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int to = (rank + 1) % size, from = (rank - 1 + size) % size, out = rank, in = -1, flag = 0, index = -1,
        n = 0, indices[2];
    OK(MPI_Irecv(&in, 1, MPI_INT, from, 2, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(&out, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &requests[1]));
    while (!flag) OK(MPI_Request_get_status_all(2, requests, &flag, statuses));
    CHECK(statuses[0].MPI_SOURCE == from && statuses[0].MPI_TAG == 2, "source %d, tag %d",
          statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);
    OK(MPI_Get_count(&statuses[0], MPI_INT, &n));
    CHECK(n == 1, "count %d speaks of the sealed message", n);
    OK(MPI_Request_get_status_any(2, requests, &index, &flag, &statuses[0]));
    CHECK(flag && (index == 0 || index == 1), "flag %d, index %d", flag, index);
    OK(MPI_Request_get_status_some(2, requests, &n, indices, statuses));
    CHECK(n == 2, "%d of 2 complete requests", n);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in == from, "got %d", in);
    statuses[0].MPI_ERROR = MPI_ERR_OTHER;
    OK(MPI_Request_get_status_any(2, requests, &index, &flag, &statuses[0]));
    CHECK(flag && index == MPI_UNDEFINED, "flag %d, index %d of no request", flag, index);
    CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG &&
              statuses[0].MPI_ERROR == MPI_SUCCESS,
          "source %d, tag %d, error %d of no message", statuses[0].MPI_SOURCE, statuses[0].MPI_TAG,
          statuses[0].MPI_ERROR);
}
#endif

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_constructors();
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    test_statuses_of_many();
#endif
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("rarely used: all right");
    MPI_Finalize();
    return 0;
}
