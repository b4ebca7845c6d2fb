/* Large messages are copied in pieces while they are sent and received, and any copy may fail. Arguments: the driver's file,
 * and what happens: errors, late or forged. */
#include "../../adversary/armed.h"
#include "../mpi/harness.h"
#include "device.h"

/* Four pieces at the sender: 256 KiB, 512 KiB, 1 MiB and the rest. Several at the receiver. */
enum { n = 3 << 20, tag = 1 };

static char* device;

/* From now on: see fake_driver.cpp. */
static void driver_fails_at(const char* call) {
    call ? setenv("FAKE_CUDA_FAIL", call, 1) : unsetenv("FAKE_CUDA_FAIL");
}

static int send(int blocking) {
    MPI_Request request;
    if (blocking) return MPI_Send(device, n, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
    OK(MPI_Isend(device, n, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int receive(int blocking) {
    MPI_Request request;
    if (blocking) return MPI_Recv(device, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    OK(MPI_Irecv(device, n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Rank 0 sends while its driver fails at `there`, rank 1 receives while its own fails at `here`. */
static void one(const char* there, const char* here, int arrives) {
    for (int blocking = 0; blocking < 2; blocking++) {
        device = device_filled(n, rank == 0 ? 5 : 6);
        driver_fails_at(rank == 0 ? there : here);
        if (rank == 0) {
            const int code = send(blocking);
            CHECK((code == MPI_SUCCESS) == !there, "a send with %s: error class %d",
                  there ? there : "no failure", class_of(code));
        } else if (!there) {
            const int code = receive(blocking);
            CHECK((code == MPI_SUCCESS) == arrives, "a receive with %s: error class %d",
                  here ? here : "no failure", class_of(code));
        }
        driver_fails_at(NULL);
        if (rank == 1 && arrives) CHECK_DEVICE(device, n, 5);
        free_device(device); /* which the driver refuses while it is copied */
    }
}

static void errors(void) {
    one(NULL, NULL, 1);
    one("cuMemcpyDtoHAsync_v2:1", NULL, 0);
    one("cuMemcpyDtoHAsync_v2:4", NULL, 0);
    one("cuEventRecord:2", NULL, 0);
    one("cuEventSynchronize", NULL, 0);
    one(NULL, "cuMemcpyHtoDAsync_v2:1", 0);
    one(NULL, "cuMemcpyHtoDAsync_v2:2", 0);
    one(NULL, "cuMemcpyHtoDAsync_v2:4", 0);
    one(NULL, "cuStreamSynchronize", 0);
    one(NULL, NULL, 1);
}

/* The driver reports that the second piece was not copied when the first has been sent. */
static void late(void) {
    device = device_filled(n, 5);
    if (rank == 0) driver_fails_at("cuEventQuery:2");
    const int code = rank == 0 ? send(1) : receive(1);
    printf("rank %d: the message went well with error class %d\n", rank, class_of(code));
}

/* Somebody changes segment 8. What was authentic before it may be in the GPU's memory, and nothing else. */
static void forged(void) {
    const int before = (64 << 10) + 7 * (128 << 10);
    char *sent = memory(n), *old = memory(n), *now = memory(n);
    device = device_filled(n, rank == 0 ? 5 : 6);
    if (rank == 0) {
        int frames, segments;
        arm();
        OK(send(1));
        CHECK(disarm(&frames, &segments), "nobody changes anything");
    } else {
        CHECK(receive(1) != MPI_SUCCESS, "a forged message went well");
        fill(sent, n, 5), fill(old, n, 6);
        from_device(now, device, n);
        int end = n;
        while (end > 0 && now[end - 1] == old[end - 1]) end--;
        CHECK(end <= before, "%d bytes were written, %d were authentic", end, before);
        /* Workers may open the first segment last. */
        CHECK(end > 0 || atoi(getenv("MPISEC_WORKERS")) > 0, "nothing was copied before the last segment");
        CHECK(memcmp(now, sent, end) == 0, "what was written was not sent");
    }
    free(sent), free(old), free(now), free_device(device);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    load_driver(argv[1]);
    if (strcmp(argv[2], "errors") == 0) errors();
    if (strcmp(argv[2], "late") == 0) late();
    if (strcmp(argv[2], "forged") == 0) forged();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    printf("rank %d: as it should\n", rank);
    return MPI_Finalize();
}
