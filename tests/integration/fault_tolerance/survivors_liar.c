/* Whoever changes the MPI library's own messages, as a library under MPIsec: survivors are told of others than there are (their order is
 * turned round); that all agree, whatever anybody said; and, from MPIX_Comm_failure_ack to the second attempt of an agreement, that rank 0 has died. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#pragma weak ompi_mpi_comm_null /* this library is also in processes without MPI (mpisec exec) */
#pragma weak ompi_request_null
#endif

#define BELOW(procedure) ((__typeof__(&procedure))dlsym(RTLD_NEXT, #procedure))

static int rank_0_is_said_to_have_died;

int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* made) {
    int rank;
    BELOW(PMPI_Comm_rank)(comm, &rank);
    return BELOW(PMPI_Comm_split)(comm, 0, -rank, made);
}

int MPIX_Comm_failure_ack(MPI_Comm comm) {
    int rank;
    BELOW(PMPI_Comm_rank)(comm, &rank);
    rank_0_is_said_to_have_died = rank != 0;
    return MPI_SUCCESS;
}

int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* failed) {
    if (!rank_0_is_said_to_have_died) return BELOW(PMPIX_Comm_get_failed)(comm, failed);
    const int first = 0;
    MPI_Group all;
    BELOW(PMPI_Comm_group)(comm, &all);
    return BELOW(PMPI_Group_incl)(all, 1, &first, failed);
}

int PMPIX_Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
    static int attempts;
    (void)comm;
    if (++attempts == 2) rank_0_is_said_to_have_died = 0;
    *flag = ~0;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}
