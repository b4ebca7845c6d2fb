/* Heat diffusion on a square plate: each rank owns a block of rows and, in every step, exchanges its
 * outermost rows
 * ("halos") with the ranks above and below. An ordinary MPI program that knows nothing of MPIsec.
 *
 *   heat ROWS COLUMNS STEPS      prints: heat ROWS COLUMNS STEPS ranks=N checksum=… seconds=…
 *
 * The checksum is over every bit of the final plate, so that two runs that differ anywhere are seen to. Each
 * halo message starts with a label, as some codes' messages do: it makes them easy to find in a packet
 * capture. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABEL "HEAT-HALO-ROW-01"

enum { label_bytes = sizeof(LABEL) - 1, up_tag = 1, down_tag = 2 };

struct halo {
    size_t bytes; /* of a message: label, then one row */
    int columns;
    char *send, *receive;
};

static void send_row(struct halo* halo, const double* row, int to, int tag, MPI_Request* request,
                     char* buffer) {
    memcpy(buffer, LABEL, label_bytes);
    memcpy(buffer + label_bytes, row, (size_t)halo->columns * sizeof *row);
    MPI_Isend(buffer, (int)halo->bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, request);
}

static void take_row(const struct halo* halo, const char* buffer, int from, double* row) {
    if (from == MPI_PROC_NULL) return;
    if (memcmp(buffer, LABEL, label_bytes) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
    memcpy(row, buffer + label_bytes, (size_t)halo->columns * sizeof *row);
}

/* Rows 0 and rows + 1 of `plate` become the neighbours' outermost rows. */
static void exchange(struct halo* halo, double* plate, int rows, int above, int below) {
    MPI_Request requests[4];
    size_t width = (size_t)halo->columns;
    MPI_Irecv(halo->receive, (int)halo->bytes, MPI_BYTE, above, down_tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(halo->receive + halo->bytes, (int)halo->bytes, MPI_BYTE, below, up_tag, MPI_COMM_WORLD,
              &requests[1]);
    send_row(halo, plate + width, above, up_tag, &requests[2], halo->send);
    send_row(halo, plate + width * (size_t)rows, below, down_tag, &requests[3], halo->send + halo->bytes);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    take_row(halo, halo->receive, above, plate);
    take_row(halo, halo->receive + halo->bytes, below, plate + width * (size_t)(rows + 1));
}

/* One explicit step of the heat equation; the plate's rim keeps its temperature. */
static void diffuse(const double* now, double* next, int rows, int columns, int first, int last) {
    for (int y = 1; y <= rows; ++y) {
        const double* row = now + (size_t)y * (size_t)columns;
        double* to = next + (size_t)y * (size_t)columns;
        memcpy(to, row, (size_t)columns * sizeof *row);
        if ((first && y == 1) || (last && y == rows)) continue;
        for (int x = 1; x < columns - 1; ++x)
            to[x] =
                row[x] + 0.2 * (row[x - 1] + row[x + 1] + row[x - columns] + row[x + columns] - 4 * row[x]);
    }
}

/* FNV-1a over the plate, rank after rank. */
static uint64_t checksum(const double* plate, size_t cells, int rank, int ranks) {
    uint64_t hash = 0xcbf29ce484222325u;
    if (rank > 0) MPI_Recv(&hash, 1, MPI_UINT64_T, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const unsigned char* bytes = (const unsigned char*)plate;
    for (size_t i = 0; i < cells * sizeof *plate; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    if (rank < ranks - 1) MPI_Send(&hash, 1, MPI_UINT64_T, rank + 1, 0, MPI_COMM_WORLD);
    MPI_Bcast(&hash, 1, MPI_UINT64_T, ranks - 1, MPI_COMM_WORLD);
    return hash;
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int all_rows = count > 1 ? atoi(arguments[1]) : 1024, columns = count > 2 ? atoi(arguments[2]) : 2048;
    int steps = count > 3 ? atoi(arguments[3]) : 200;
    if (all_rows < ranks || columns < 3 || steps < 0) {
        if (rank == 0)
            fprintf(stderr,
                    "heat: needs at least one row per rank, three columns and no negative number of steps\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rows = all_rows / ranks + (rank < all_rows % ranks);
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;

    size_t cells = (size_t)(rows + 2) * (size_t)columns;
    double *now = calloc(cells, sizeof *now), *next = calloc(cells, sizeof *next);
    struct halo halo = {label_bytes + (size_t)columns * sizeof *now, columns, NULL, NULL};
    halo.send = malloc(2 * halo.bytes);
    halo.receive = malloc(2 * halo.bytes);
    if (!now || !next || !halo.send || !halo.receive) MPI_Abort(MPI_COMM_WORLD, 4);
    for (int y = 1; y <= rows; ++y) now[(size_t)y * (size_t)columns] = 100; /* the left edge is hot */
    for (int x = 0; rank == 0 && x < columns; ++x) now[(size_t)columns + (size_t)x] = 50 + x % 7;

    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        exchange(&halo, now, rows, above, below);
        diffuse(now, next, rows, columns, rank == 0, rank == ranks - 1);
        double* swap = now;
        now = next;
        next = swap;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;

    uint64_t hash = checksum(now + columns, (size_t)rows * (size_t)columns, rank, ranks);
    if (rank == 0)
        printf("heat %d %d %d ranks=%d checksum=%016llx seconds=%.6f\n", all_rows, columns, steps, ranks,
               (unsigned long long)hash, seconds);
    free(now);
    free(next);
    free(halo.send);
    free(halo.receive);
    MPI_Finalize();
    return 0;
}
