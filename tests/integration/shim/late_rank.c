/* Rank 0 is three seconds late for a broadcast from rank 1 and a sum. Usage: late_rank world | session. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int late_for(MPI_Comm comm) {
    int rank, size, value, sum = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank == 0) sleep(3);
    value = rank == 1 ? 42 : 0;
    MPI_Bcast(&value, 1, MPI_INT, 1, comm);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    return value == 42 && sum == 42 * size;
}

#if MPI_VERSION >= 4
static int session(void) {
    MPI_Session session;
    MPI_Group everybody;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &everybody);
    MPI_Comm_create_from_group(everybody, "late", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    int fine = late_for(comm);
    MPI_Group_free(&everybody);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return fine;
}
#else
static int session(void) {
    return 0;
}
#endif

int main(int argc, char** argv) {
    int fine;
    if (argc > 1 && strcmp(argv[1], "world") == 0) {
        MPI_Init(&argc, &argv);
        fine = late_for(MPI_COMM_WORLD);
        MPI_Finalize();
    } else {
        fine = session() && session(); /* the second finds nothing of the first */
    }
    printf(fine ? "fine\n" : "WRONG\n");
    return !fine;
}
