/* How much of /dev/shm persistent collectives take, and what becomes of one for which there is none. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { OPERATIONS = 100 };

static MPI_Comm node;
static int rank, node_rank;

static long kib_used(void) {
    struct statvfs is;
    MPI_Barrier(node);
    statvfs("/dev/shm", &is);
    MPI_Barrier(node);
    return (long)((is.f_blocks - is.f_bfree) * is.f_frsize / 1024);
}

/* The kernel gives files of this process no more memory. */
static void limit_files(rlim_t most) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &limit);
}

int main(int argc, char** argv) {
    MPI_Request all[OPERATIONS], more;
    int sums[OPERATIONS], sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

    const long before = kib_used();
    for (int i = 0; i < OPERATIONS; ++i) {
        MPI_Allreduce_init(&rank, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &all[i]);
        MPI_Start(&all[i]);
    }
    MPI_Waitall(OPERATIONS, all, MPI_STATUSES_IGNORE);
    const long each = (kib_used() - before) / OPERATIONS;
    if (node_rank == 0) printf("each %ld KiB\n", each);

    signal(SIGXFSZ, SIG_IGN);
    limit_files(1);
    const int code =
        MPI_Allreduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &more);
    int class = 0;
    MPI_Error_class(code, &class);
    MPI_Barrier(MPI_COMM_WORLD);
    limit_files(RLIM_INFINITY);
    printf("limited %s\n", class == MPI_ERR_NO_MEM ? "no memory" : "OTHER");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce_init(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &more);
    MPI_Start(&more);
    MPI_Wait(&more, MPI_STATUS_IGNORE);
    printf("after %d\n", sum);
    MPI_Request_free(&more);
    for (int i = 0; i < OPERATIONS; ++i) MPI_Request_free(&all[i]);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
