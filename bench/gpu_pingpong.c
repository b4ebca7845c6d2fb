/* Ping-pong between the first and the last rank with buffers in the memory of GPU 0, and by turns with it: with buffers of
 * the host, under MPIsec and plain, and the copies alone that a message from GPU to GPU cannot do without, from the GPU to
 * pinned memory and back. One-way microseconds.
 *
 * gpu_pingpong [--sizes 65536,…] [--blocks N] [--block-us T] [--driver libcuda.so.1]
 * One line of JSON per size on rank 0: medians, and "ratio", of the device's time to the longest of the link's (plain, of the host's
 * memory) and the copies'. What arrived last is compared with what was sent. */
#include "exchange.h"
#include "gpu_memory.h"
#include "options.h"

enum { DEVICE = 0, HOST, LINK, DOWN, UP, WAYS };

static int rank, peer;
static char *device_out, *device_in, *host_out, *host_in;

/* The copies are rank 0's: meanwhile the other waits for its next message. */
static double one_way(int way, int bytes, int iterations) {
    if (way == DEVICE) return exchange_one_way(ORDINARY, peer, device_out, device_in, bytes, iterations);
    if (way == HOST || way == LINK)
        return exchange_one_way(way == HOST ? ORDINARY : PLAIN, peer, host_out, host_in, bytes, iterations);
    const double start = MPI_Wtime();
    for (int i = 0; rank == 0 && i < iterations; ++i)
        way == DOWN ? gpu_get(host_in, device_out, (size_t)bytes)
                    : gpu_put(device_in, host_out, (size_t)bytes);
    return (MPI_Wtime() - start) / iterations * 1e6;
}

static void fill(char* bytes, size_t n, int of_rank) {
    for (size_t i = 0; i < n; ++i) bytes[i] = (char)(i * 31 + (i >> 10) + (size_t)of_rank * 101);
}

/* Both ranks compare what arrived in their GPU's memory. */
static void compare(int bytes) {
    const size_t n = (size_t)bytes;
    memset(host_in, 0, n);
    gpu_put(device_in, host_in, n);
    one_way(DEVICE, bytes, 1);
    gpu_get(host_in, device_in, n);
    fill(host_out, n, peer);
    if (memcmp(host_out, host_in, n) != 0) {
        fprintf(stderr, "gpu_pingpong: %d bytes arrived changed\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int iterations_for(const struct options* options, int way, int bytes) {
    const double us = one_way(way, bytes, 3);
    int iterations = rank == 0 ? (int)(options->block_us / (2 * us)) : 0; /* the copies take rank 1 no time */
    if (iterations < 2) iterations = 2;
    MPI_Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return iterations;
}

static void print_row(int bytes, const double* us) {
    const double bound = us[LINK] > us[DOWN] ? us[LINK] : us[DOWN], slower = bound > us[UP] ? bound : us[UP];
    printf(
        "{\"bytes\": %d, \"device_us\": %.1f, \"host_us\": %.1f, \"link_us\": %.1f, \"down_us\": %.1f, "
        "\"up_us\": %.1f, \"device_gb_per_s\": %.3f, \"host_gb_per_s\": %.3f, \"link_gb_per_s\": %.3f, "
        "\"down_gb_per_s\": %.3f, \"up_gb_per_s\": %.3f, \"ratio\": %.3f}\n",
        bytes, us[DEVICE], us[HOST], us[LINK], us[DOWN], us[UP], bytes / us[DEVICE] / 1e3,
        bytes / us[HOST] / 1e3, bytes / us[LINK] / 1e3, bytes / us[DOWN] / 1e3, bytes / us[UP] / 1e3,
        us[DEVICE] / slower);
    fflush(stdout);
}

static void measure(const struct options* options, int bytes) {
    static double times[WAYS][MAX_BLOCKS];
    const size_t room = (size_t)bytes + 1;
    device_out = gpu_memory(room), device_in = gpu_memory(room);
    host_out = pinned_memory(room), host_in = pinned_memory(room);
    fill(host_out, room, rank);
    gpu_put(device_out, host_out, room);
    int iterations[WAYS];
    for (int way = 0; way < WAYS; ++way) iterations[way] = iterations_for(options, way, bytes);
    for (int i = 0; i < options->blocks; ++i)
        for (int turn = 0; turn < WAYS; ++turn) {
            const int way = (turn + i) % WAYS;
            times[way][i] = one_way(way, bytes, iterations[way]);
        }
    double us[WAYS];
    for (int way = 0; way < WAYS; ++way) us[way] = median(times[way], options->blocks);
    compare(bytes);
    if (rank == 0) print_row(bytes, us);
    gpu_check(gpu.release((gpu_address)device_out) | gpu.release((gpu_address)device_in),
              "giving memory back");
    gpu_check(gpu.unpin(host_out) | gpu.unpin(host_in), "giving memory back");
}

int main(int argc, char** argv) {
    struct options options = {
        .sizes = "65536,262144,1048576,4194304,16777216,67108864", .blocks = 11, .block_us = 20000};
    options.driver = "libcuda.so.1";
    read_options(&options, "gpu_pingpong", argc, argv);
    int size;
    char name[100] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer = rank == 0 ? size - 1 : 0;
    if (size != 2) {
        fprintf(stderr, "gpu_pingpong: needs two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    gpu_start(options.driver, name, sizeof name);
    if (rank == 0) fprintf(stderr, "gpu_pingpong: %s\n", name);
    find_plain_exchange();
    char* sizes = strdup(options.sizes);
    for (char* item = strtok(sizes, ","); item; item = strtok(NULL, ",")) measure(&options, atoi(item));
    free(sizes);
    MPI_Finalize();
    return 0;
}
