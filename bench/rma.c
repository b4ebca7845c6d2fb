/* One-sided operations of the first rank on the memory of another, the last unless --peer says so, under
 * MPI_Win_lock_all: microseconds until MPI_Win_flush returns (interleaving.h says how plain and sealed take turns). The
 * target waits in MPI_Recv of the same kind meanwhile, as a program does that serves others.
 *
 *   --operation put | get | accumulate   of MPI_INT64_T, MPI_SUM; one and a flush
 *   --operation fetch_and_op             of one MPI_INT64_T, MPI_SUM
 *   --operation puts                     --window of them, each to a place of its own, and a flush
 *
 * rma [--sizes 8,65536] [--operation put] [--window 64] [--blocks N] [--block-us T] [--ordinary 1] [--peer RANK]
 * One line of JSON per size on rank 0. Ranks that have no part sleep. What was put last is fetched back and
 * compared, and fetch_and_op must have counted every call. */
#include "idle.h"
#include "interleaving.h"

#include <stdint.h>

enum { TAG = 79 };

static int (*Send[KINDS])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {NULL, MPI_Send};
static int (*Recv[KINDS])(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = {NULL, MPI_Recv};
static int (*Win_allocate[KINDS])(MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*) = {NULL,
                                                                                         MPI_Win_allocate};
static int (*Win_free[KINDS])(MPI_Win*) = {NULL, MPI_Win_free};
static int (*Win_lock_all[KINDS])(int, MPI_Win) = {NULL, MPI_Win_lock_all};
static int (*Win_unlock_all[KINDS])(MPI_Win) = {NULL, MPI_Win_unlock_all};
static int (*Win_flush[KINDS])(int, MPI_Win) = {NULL, MPI_Win_flush};
static int (*Put[KINDS])(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win) = {
    NULL, MPI_Put};
static int (*Get[KINDS])(void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win) = {NULL,
                                                                                                 MPI_Get};
static int (*Accumulate[KINDS])(const void*, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Op,
                                MPI_Win) = {NULL, MPI_Accumulate};
static int (*Fetch_and_op[KINDS])(const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Op, MPI_Win) = {
    NULL, MPI_Fetch_and_op};

static void look_up(void) {
    *(void**)&Send[PLAIN] = underneath("PMPI_Send");
    *(void**)&Recv[PLAIN] = underneath("PMPI_Recv");
    *(void**)&Win_allocate[PLAIN] = underneath("PMPI_Win_allocate");
    *(void**)&Win_free[PLAIN] = underneath("PMPI_Win_free");
    *(void**)&Win_lock_all[PLAIN] = underneath("PMPI_Win_lock_all");
    *(void**)&Win_unlock_all[PLAIN] = underneath("PMPI_Win_unlock_all");
    *(void**)&Win_flush[PLAIN] = underneath("PMPI_Win_flush");
    *(void**)&Put[PLAIN] = underneath("PMPI_Put");
    *(void**)&Get[PLAIN] = underneath("PMPI_Get");
    *(void**)&Accumulate[PLAIN] = underneath("PMPI_Accumulate");
    *(void**)&Fetch_and_op[PLAIN] = underneath("PMPI_Fetch_and_op");
}

static int rank, target, depth;
static const char* operation;
static char *out, *in;
static int64_t calls[KINDS], fetched[KINDS];
static MPI_Win windows[KINDS];

static void fail(const char* sentence, int bytes) {
    fprintf(stderr, "rma: %s, %d bytes\n", sentence, bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void operate(enum kind kind, int bytes) {
    const int64_t one = 1;
    const MPI_Win window = windows[kind];
    if (strcmp(operation, "put") == 0) {
        Put[kind](out, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, window);
    } else if (strcmp(operation, "get") == 0) {
        Get[kind](in, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, window);
    } else if (strcmp(operation, "accumulate") == 0) {
        Accumulate[kind](out, bytes / 8, MPI_INT64_T, target, 0, bytes / 8, MPI_INT64_T, MPI_SUM, window);
    } else if (strcmp(operation, "fetch_and_op") == 0) {
        Fetch_and_op[kind](&one, &fetched[kind], MPI_INT64_T, target, 0, MPI_SUM, window);
        ++calls[kind];
    } else {
        for (int i = 0; i < depth; ++i)
            Put[kind](out, bytes, MPI_BYTE, target, (MPI_Aint)i * bytes, bytes, MPI_BYTE, window);
    }
    Win_flush[kind](target, window);
}

static double operations(enum kind kind, int bytes, int iterations) {
    if (rank == target) {
        Recv[kind](NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    const double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) operate(kind, bytes);
    const double time = (MPI_Wtime() - start) / iterations * 1e6;
    Send[kind](NULL, 0, MPI_BYTE, target, TAG, MPI_COMM_WORLD);
    return time;
}

static void compare(int bytes) {
    if (rank == target) {
        operations(ORDINARY, bytes, 1);
        return;
    }
    if (strcmp(operation, "fetch_and_op") == 0 && fetched[ORDINARY] != calls[ORDINARY] - 1)
        fail("a call was not counted", bytes);
    Put[ORDINARY](out, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, windows[ORDINARY]);
    Win_flush[ORDINARY](target, windows[ORDINARY]);
    memset(in, 0, (size_t)bytes);
    Get[ORDINARY](in, bytes, MPI_BYTE, target, 0, bytes, MPI_BYTE, windows[ORDINARY]);
    Win_flush[ORDINARY](target, windows[ORDINARY]);
    if (memcmp(out, in, (size_t)bytes) != 0) fail("what was put is not what was fetched", bytes);
    MPI_Send(NULL, 0, MPI_BYTE, target, TAG, MPI_COMM_WORLD);
}

static void make_windows(const struct options* options, int bytes, int size) {
    const MPI_Aint room = (MPI_Aint)bytes * depth;
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind) {
        char* memory;
        Win_allocate[kind](room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &windows[kind]);
        memset(memory, 0, (size_t)room);
        MPI_Barrier(MPI_COMM_WORLD);
        Win_lock_all[kind](size > 2 ? MPI_MODE_NOCHECK : 0, windows[kind]);
        MPI_Barrier(MPI_COMM_WORLD);
        calls[kind] = 0;
    }
    out = malloc((size_t)bytes), in = malloc((size_t)bytes);
    memset(out, 0x5A, (size_t)bytes);
}

static void free_windows(const struct options* options) {
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind) {
        Win_unlock_all[kind](windows[kind]);
        MPI_Barrier(MPI_COMM_WORLD);
        Win_free[kind](&windows[kind]);
    }
    free(out), free(in);
}

/* How many operations fill a block; both ends know. */
static int iterations_for(const struct options* options, int bytes) {
    int iterations = (int)(options->block_us / (operations(ORDINARY, bytes, 10) + 1e-3));
    if (iterations < 2) iterations = 2;
    if (rank == 0)
        MPI_Send(&iterations, 1, MPI_INT, target, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(&iterations, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return iterations;
}

static void measure(const struct options* options, int bytes) {
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind)
        operations(kind, bytes, 3);
    interleave(options, operations, bytes, iterations_for(options, bytes), rank == 0);
    compare(bytes);
}

int main(int argc, char** argv) {
    struct options options = {"8,65536", 11, 5000, 0, 0, 64, 0, 0, "put"};
    int size = 0;
    read_options(&options, "rma", argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    target = options.peer > 0 ? options.peer : size - 1;
    operation = options.operation;
    depth = strcmp(operation, "puts") == 0 ? options.window : 1;
    if (target < 1 || target >= size || depth < 1) {
        fprintf(stderr, "rma: needs two ranks, --peer one of them, and a --window of at least 1\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (!options.ordinary) look_up();
    char* sizes = strdup(options.sizes);
    for (char* item = strtok(sizes, ","); item; item = strtok(NULL, ",")) {
        const int bytes = (atoi(item) + 7) / 8 * 8;
        make_windows(&options, bytes, size);
        if (rank == 0 || rank == target)
            measure(&options, bytes);
        else
            sleep_until_called(TAG);
        if (rank == 0) call_sleepers(size, target, TAG);
        free_windows(&options);
    }
    free(sizes);
    MPI_Finalize();
    return 0;
}
