/* Whoever changes the MPI library's own messages, as a library under MPIsec: survivors are told of others than there are (their order is
 * turned round), and that all agree, whatever anybody said. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#pragma weak ompi_mpi_comm_null /* this library is also in processes without MPI (mpisec exec) */
#endif

int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* made) {
    int rank;
    __typeof__(&PMPI_Comm_split) split = (__typeof__(&PMPI_Comm_split))dlsym(RTLD_NEXT, "PMPI_Comm_split");
    ((__typeof__(&PMPI_Comm_rank))dlsym(RTLD_NEXT, "PMPI_Comm_rank"))(comm, &rank);
    return split(comm, 0, -rank, made);
}

int PMPIX_Comm_agree(MPI_Comm comm, int* flag) {
    (void)comm;
    *flag = ~0;
    return MPI_SUCCESS;
}
