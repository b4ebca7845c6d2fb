/* A collective that the ranks do not call alike, then a barrier on the same communicator, then one on another: each rank says what it is told.
   Usage: calls_that_differ CASE [return | world | end]; errors are fatal but with `return` and `world`, where all is done on MPI_COMM_WORLD; with `end`
   nothing is between the first call and MPI_Finalize. 4 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { room = 8 << 20, large = 2 << 20 };
static int rank;
static MPI_Comm comm;
static char *data, *result;

static void told(const char* what, int code) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    const char* name = error_class == MPI_SUCCESS        ? "success"
                       : error_class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE"
                       : error_class == MPI_ERR_OTHER    ? "MPI_ERR_OTHER"
                       : error_class == MPI_ERR_ROOT     ? "MPI_ERR_ROOT"
                                                         : "another error";
    printf("rank %d: %s: %s\n", rank, what, name);
    fflush(stdout);
}

static int call(const char* which) {
    const int odd = rank == 1;
    MPI_Request request;
    if (!strcmp(which, "bcast-more")) return MPI_Bcast(data, rank ? 4 : large, MPI_BYTE, 0, comm);
    if (!strcmp(which, "bcast-fewer")) return MPI_Bcast(data, rank ? large : 4, MPI_BYTE, 0, comm);
    if (!strcmp(which, "allreduce"))
        return MPI_Allreduce(data, result, odd ? 400000 : 2, MPI_INT, MPI_SUM, comm);
    if (!strcmp(which, "reduce"))
        return MPI_Reduce(data, result, odd ? 400000 : 2, MPI_INT, MPI_SUM, 2, comm);
    if (!strcmp(which, "alltoall")) return MPI_Alltoall(data, odd ? 2 : 1, MPI_INT, result, 1, MPI_INT, comm);
    if (!strcmp(which, "allgather"))
        return MPI_Allgather(data, odd ? 2 : 1, MPI_INT, result, 1, MPI_INT, comm);
    if (!strcmp(which, "scatter"))
        return MPI_Scatter(data, rank ? 0 : 2, MPI_INT, result, rank ? 2 : 1, MPI_INT, 0, comm);
    if (!strcmp(which, "barrier"))
        return rank == 2 ? MPI_Barrier(comm)
                         : MPI_Allgather(data, 1000, MPI_INT, result, 1000, MPI_INT, comm);
    if (!strcmp(which, "root")) {  // two trees of different roots
        MPI_Reduce(data, result, large / 4, MPI_INT, MPI_SUM, odd ? 3 : 0, comm);
        return MPI_Bcast(data, large, MPI_BYTE, odd ? 3 : 0, comm);
    }
    if (!strcmp(which, "ibcast-more")) {
        MPI_Ibcast(data, rank ? 4 : large, MPI_BYTE, 0, comm, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (!strcmp(which, "ibcast-polled")) { /* seldom */
        int done = 0, code = MPI_Ibcast(data, rank ? 4 : large, MPI_BYTE, 0, comm, &request);
        for (; code == MPI_SUCCESS && !done; usleep(20000))
            code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        return code;
    }
    abort();
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char* way = argc > 2 ? argv[2] : "";
    if (strcmp(way, "world") == 0 || strcmp(way, "end") == 0)
        comm = MPI_COMM_WORLD;
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (strcmp(way, "return") == 0 || strcmp(way, "world") == 0)
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    data = calloc(1, room);
    result = calloc(1, room);
    told("call", call(argv[1]));
    if (strcmp(way, "end") != 0) {
        told("barrier", MPI_Barrier(comm));
        if (comm != MPI_COMM_WORLD) told("barrier of the world", MPI_Barrier(MPI_COMM_WORLD));
    }
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    MPI_Finalize();
    printf("rank %d: the end\n", rank);
    free(data);
    free(result);
    return 0;
}
