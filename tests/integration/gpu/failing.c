/* A driver that cannot copy: an error of MPI's on the ranks concerned, and what is sent afterwards arrives. */
#include "../mpi/harness.h"
#include "device.h"

/* Rank 0 accesses the GPU's memory of rank 1, whose driver cannot copy it out. */
static void one_sided(void) {
    enum { most = 150000 };
    static const int lengths[] = {1000, most};
    char *device = device_memory(most), *host = memory(most);
    MPI_Win win;
    OK(MPI_Win_create(device, most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (rank == 0) {
        for (int i = 0; i < 2; i++) {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
            OK(MPI_Get(host, lengths[i], MPI_BYTE, 1, 0, lengths[i], MPI_BYTE, win));
            CHECK(MPI_Win_unlock(1, win) != MPI_SUCCESS, "MPI_Get of %d bytes went well", lengths[i]);
        }
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        CHECK(MPI_Put(device, 1000, MPI_BYTE, 1, 0, 1000, MPI_BYTE, win) != MPI_SUCCESS, "MPI_Put went well");
        OK(MPI_Win_unlock(1, win));
        /* Its target waits for what has been announced: nothing is believed of the window any more. */
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        OK(MPI_Put(device, most, MPI_BYTE, 1, 0, most, MPI_BYTE, win));
        CHECK(MPI_Win_unlock(1, win) != MPI_SUCCESS, "MPI_Put of %d bytes went well", most);
    }
    CHECK(MPI_Win_free(&win) != MPI_SUCCESS, "the window's end went well");
    free_device(device), free(host);
}

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
    one_sided();
    printf("rank %d: as it should\n", rank);
    return MPI_Finalize();
}
