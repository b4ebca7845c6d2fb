/* MPIX_Comm_agree and MPIX_Comm_shrink over a network that lies (survivors_liar.c): what each rank was told. Each clears a bit of its own. */
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, flag = 7;
    MPI_Comm left = MPI_COMM_NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    flag &= ~(1 << rank);
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    const int agreed = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    const int shrunk = MPIX_Comm_shrink(MPI_COMM_WORLD, &left);
    printf("%d agree %s %d, shrink %s %s\n", rank, agreed ? "error" : "fine", flag, shrunk ? "error" : "fine",
           left == MPI_COMM_NULL ? "none" : "some");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
