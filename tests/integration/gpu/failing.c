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
        for (int i = 0; i < 2; i++)
            CHECK(MPI_Put(device, lengths[i], MPI_BYTE, 1, 0, lengths[i], MPI_BYTE, win) != MPI_SUCCESS,
                  "MPI_Put of %d bytes went well", lengths[i]);
        OK(MPI_Win_unlock(1, win));
    }
    OK(MPI_Win_free(&win)); /* nobody else has heard of it */
    free_device(device), free(host);
}

/* A partition that could not be copied may be made ready once more: here it never can, and the request is left. */
static void partitioned(void) {
#if HAVE_COUNT_VARIANTS
    if (rank != 0) return;
    MPI_Request request;
    char* device = device_memory(200);
    OK(MPI_Psend_init(device, 2, 100, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    for (int i = 0; i < 2; i++)
        CHECK(class_of(MPI_Pready_range(0, 1, request)) == MPI_ERR_OTHER, "MPI_Pready_range went well");
#endif
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
    partitioned();
    printf("rank %d: as it should\n", rank);
    return MPI_Finalize();
}
