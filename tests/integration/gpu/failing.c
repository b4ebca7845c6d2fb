/* A driver that cannot copy: an error of MPI's on the ranks concerned, and what is sent afterwards arrives. */
#include "../mpi/harness.h"
#include "device.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    load_driver(argv[1]);
    char *device = device_memory(5000), host[100];
    MPI_Request request;
    if (rank == 0) {
        CHECK(MPI_Send(device, 5000, MPI_BYTE, 1, 1, MPI_COMM_WORLD) != MPI_SUCCESS, "MPI_Send went well");
        OK(MPI_Isend(device, 5000, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "MPI_Isend went well");
        fill(host, sizeof host, 5);
        OK(MPI_Send(host, sizeof host, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(host, sizeof host, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_FILLED(host, sizeof host, 5);
    }
    printf("rank %d: as it should\n", rank);
    return MPI_Finalize();
}
