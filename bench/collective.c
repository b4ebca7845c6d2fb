/* Latency of one collective over all ranks (interleaving.h says how plain and sealed take turns).
 *
 * Within a block every call is timed apart, after a barrier; the block's time is the mean over its calls and
 * over the ranks, as the OSU benchmarks have it. The barrier is of the block's own kind, plain or sealed, as
 * it would be in a program that runs plain or sealed: where ranks share cores, who leaves an MPI library's
 * barrier late keeps others from running. There most of the time passes in plain barriers, and a rank that
 * leaves one late finds its broadcast there already: the ratio of calls with their barriers says what a
 * program sees.
 *
 * collective NAME [--sizes 1,1024,…] [--blocks N] [--block-us T] [--ordinary 1]
 *
 * One line of JSON per size on rank 0, with times in microseconds per call. A size is bytes of the vector
 * (bcast, reductions, scans) or of one rank's block (the others). Results of both kinds are compared. */
#include "options.h"
#include "underneath.h"

#include <mpi.h>

struct procedures {
    int (*Barrier)(MPI_Comm);
    int (*Bcast)(void*, int, MPI_Datatype, int, MPI_Comm);
    int (*Gather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
    int (*Scatter)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
    int (*Allgather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
    int (*Alltoall)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
    int (*Gatherv)(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, int,
                   MPI_Comm);
    int (*Scatterv)(const void*, const int*, const int*, MPI_Datatype, void*, int, MPI_Datatype, int,
                    MPI_Comm);
    int (*Allgatherv)(const void*, int, MPI_Datatype, void*, const int*, const int*, MPI_Datatype, MPI_Comm);
    int (*Alltoallv)(const void*, const int*, const int*, MPI_Datatype, void*, const int*, const int*,
                     MPI_Datatype, MPI_Comm);
    int (*Reduce)(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
    int (*Allreduce)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*Reduce_scatter_block)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*Scan)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*Exscan)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*Neighbor_allgather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
    int (*Neighbor_alltoall)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
};
static struct procedures plain, sealed;

static int rank, size;
static char *out, *in;
static int *counts, *places; /* of the blocks of all ranks, for calls that take them */
static MPI_Comm torus;       /* two-dimensional, periodic: four neighbours each */

/* Without turns the program is an ordinary one, which looks nothing up underneath. */
static void look_up(int ordinary) {
#define PROCEDURE(name)       \
    sealed.name = MPI_##name; \
    *(void**)&plain.name = ordinary ? (void*)MPI_##name : underneath("PMPI_" #name)
    PROCEDURE(Barrier);
    PROCEDURE(Bcast);
    PROCEDURE(Gather);
    PROCEDURE(Scatter);
    PROCEDURE(Allgather);
    PROCEDURE(Alltoall);
    PROCEDURE(Gatherv);
    PROCEDURE(Scatterv);
    PROCEDURE(Allgatherv);
    PROCEDURE(Alltoallv);
    PROCEDURE(Reduce);
    PROCEDURE(Allreduce);
    PROCEDURE(Reduce_scatter_block);
    PROCEDURE(Scan);
    PROCEDURE(Exscan);
    PROCEDURE(Neighbor_allgather);
    PROCEDURE(Neighbor_alltoall);
#undef PROCEDURE
}

/* One call. Reductions take bytes for doubles where eight fit, so that the arithmetic is a program's. */
typedef void collective(const struct procedures* mpi, int n);

static MPI_Datatype number(int* n) {
    if (*n % 8 != 0) return MPI_BYTE;
    *n /= 8;
    return MPI_DOUBLE;
}
static MPI_Op operation(MPI_Datatype type) {
    return type == MPI_BYTE ? MPI_BOR : MPI_SUM;
}

static void barrier(const struct procedures* mpi, int n) {
    (void)n;
    mpi->Barrier(MPI_COMM_WORLD);
}
static void bcast(const struct procedures* mpi, int n) {
    if (rank == 0) in[0] = out[0];
    mpi->Bcast(in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void gather(const struct procedures* mpi, int n) {
    mpi->Gather(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scatter(const struct procedures* mpi, int n) {
    mpi->Scatter(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void allgather(const struct procedures* mpi, int n) {
    mpi->Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoall(const struct procedures* mpi, int n) {
    mpi->Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD);
}
static void gatherv(const struct procedures* mpi, int n) {
    mpi->Gatherv(out, n, MPI_BYTE, in, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void scatterv(const struct procedures* mpi, int n) {
    mpi->Scatterv(out, counts, places, MPI_BYTE, in, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void allgatherv(const struct procedures* mpi, int n) {
    mpi->Allgatherv(out, n, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoallv(const struct procedures* mpi, int n) {
    (void)n;
    mpi->Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}
static void reduce(const struct procedures* mpi, int n) {
    MPI_Datatype type = number(&n);
    mpi->Reduce(out, in, n, type, operation(type), 0, MPI_COMM_WORLD);
}
static void allreduce(const struct procedures* mpi, int n) {
    MPI_Datatype type = number(&n);
    mpi->Allreduce(out, in, n, type, operation(type), MPI_COMM_WORLD);
}
static void reduce_scatter(const struct procedures* mpi, int n) {
    MPI_Datatype type = number(&n);
    mpi->Reduce_scatter_block(out, in, n, type, operation(type), MPI_COMM_WORLD);
}
static void scan(const struct procedures* mpi, int n) {
    MPI_Datatype type = number(&n);
    mpi->Scan(out, in, n, type, operation(type), MPI_COMM_WORLD);
}

static void exscan(const struct procedures* mpi, int n) {
    MPI_Datatype type = number(&n);
    mpi->Exscan(out, in, n, type, operation(type), MPI_COMM_WORLD);
}
static void neighbor_allgather(const struct procedures* mpi, int n) {
    mpi->Neighbor_allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, torus);
}
static void neighbor_alltoall(const struct procedures* mpi, int n) {
    mpi->Neighbor_alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, torus);
}

enum blocks { ONE, ONE_PER_RANK, ONE_PER_NEIGHBOUR };
static size_t count(enum blocks blocks) {
    return blocks == ONE ? 1 : blocks == ONE_PER_RANK ? (size_t)size : 4;
}

static const struct {
    const char* name;
    collective* call;
    enum blocks sent, received; /* in a rank's buffers */
} known[] = {
    {"barrier", barrier, ONE, ONE},
    {"bcast", bcast, ONE, ONE},
    {"gather", gather, ONE, ONE_PER_RANK},
    {"scatter", scatter, ONE_PER_RANK, ONE},
    {"allgather", allgather, ONE, ONE_PER_RANK},
    {"alltoall", alltoall, ONE_PER_RANK, ONE_PER_RANK},
    {"gatherv", gatherv, ONE, ONE_PER_RANK},
    {"scatterv", scatterv, ONE_PER_RANK, ONE},
    {"allgatherv", allgatherv, ONE, ONE_PER_RANK},
    {"alltoallv", alltoallv, ONE_PER_RANK, ONE_PER_RANK},
    {"reduce", reduce, ONE, ONE},
    {"allreduce", allreduce, ONE, ONE},
    {"reduce_scatter", reduce_scatter, ONE_PER_RANK, ONE},
    {"scan", scan, ONE, ONE},
    {"exscan", exscan, ONE, ONE},
    {"neighbor_allgather", neighbor_allgather, ONE, ONE_PER_NEIGHBOUR},
    {"neighbor_alltoall", neighbor_alltoall, ONE_PER_NEIGHBOUR, ONE_PER_NEIGHBOUR},
};

/* Mean microseconds over the calls and the ranks: of a call, and of a call with its barrier. */
struct times {
    double call, with_barrier;
};

static struct times block(const struct procedures* mpi, collective* call, int n, int iterations) {
    enum { WARM_UP = 3 }; /* what the ranks did before was of the other kind */
    double spent[2] = {0, 0}, all[2];
    for (int i = -WARM_UP; i < iterations; ++i) {
        const double before = MPI_Wtime();
        mpi->Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call(mpi, n);
        const double end = MPI_Wtime();
        if (i >= 0) spent[0] += end - start, spent[1] += end - before;
    }
    mpi->Allreduce(spent, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const double unit = 1e6 / size / iterations;
    return (struct times){all[0] * unit, all[1] * unit};
}

/* So many calls, with their barriers, take `block_us`. */
static int iterations_for(const struct procedures* mpi, collective* call, int n, double block_us) {
    int iterations = (int)(block_us / block(mpi, call, n, 5).with_barrier);
    if (iterations < 2) iterations = 2;
    plain.Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return iterations;
}

/* Small whole numbers: sums of doubles are exact in any order. */
static void fill(size_t bytes) {
    if (bytes % 8 == 0)
        for (size_t i = 0; i < bytes / 8; ++i)
            ((double*)(void*)out)[i] = (double)((i + (size_t)rank * 7) % 1000);
    else
        for (size_t i = 0; i < bytes; ++i) out[i] = (char)(i * 3 + (size_t)rank * 7);
}

static void compare(collective* call, int n, size_t received) {
    char* wanted = malloc(received + 1);
    memset(in, 0, received + 1);
    if (call == bcast && rank == 0) memcpy(in, out, received);
    call(&plain, n);
    memcpy(wanted, in, received);
    memset(in, 0, received + 1);
    if (call == bcast && rank == 0) memcpy(in, out, received);
    call(&sealed, n);
    if (memcmp(in, wanted, received) != 0) {
        fprintf(stderr, "collective: rank %d: plain and sealed differ at %d bytes\n", rank, n);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(wanted);
}

static double called[KINDS][MAX_BLOCKS], whole[KINDS][MAX_BLOCKS]; /* whole: with the barrier */

static double median_ratio(double times[KINDS][MAX_BLOCKS], int blocks) {
    static double ratios[MAX_BLOCKS];
    for (int i = 0; i < blocks; ++i) ratios[i] = times[ORDINARY][i] / times[PLAIN][i];
    return median(ratios, blocks);
}

static void take_blocks(const struct options* options, collective* call, int n) {
    const struct procedures* const mpi[KINDS] = {&plain, &sealed};
    int iterations[KINDS];
    for (enum kind kind = options->ordinary ? ORDINARY : PLAIN; kind < KINDS; ++kind)
        iterations[kind] = iterations_for(mpi[kind], call, n, options->block_us);
    for (int i = 0; i < options->blocks; ++i)
        for (int turn = 0; turn < KINDS; ++turn) {
            const enum kind kind = (i & 1) == turn ? PLAIN : ORDINARY;
            if (kind == PLAIN && options->ordinary) continue;
            const struct times of = block(mpi[kind], call, n, iterations[kind]);
            called[kind][i] = of.call, whole[kind][i] = of.with_barrier;
        }
}

static void print(const struct options* options, int n) {
    const double ratio = median_ratio(called, options->blocks),
                 ratio_with = median_ratio(whole, options->blocks);
    printf("{\"bytes\": %d, \"time_us\": %.3f, \"time_with_barrier_us\": %.3f", n,
           median(called[ORDINARY], options->blocks), median(whole[ORDINARY], options->blocks));
    if (!options->ordinary)
        printf(", \"plain_us\": %.3f, \"ratio\": %.4f, \"ratio_with_barrier\": %.4f",
               median(called[PLAIN], options->blocks), ratio, ratio_with);
    printf("}\n");
    fflush(stdout);
}

static void measure(const struct options* options, int which, int n) {
    collective* call = known[which].call;
    const size_t sent = (size_t)n * count(known[which].sent),
                 received = (size_t)n * count(known[which].received);
    out = malloc(sent + 8), in = malloc(received + 8);
    for (int i = 0; i < size; ++i) counts[i] = n, places[i] = i * n;
    fill(sent);
    if (!options->ordinary) compare(call, n, received);
    take_blocks(options, call, n);
    if (rank == 0) print(options, n);
    free(out), free(in);
}

int main(int argc, char** argv) {
    struct options options = {"1,16,256,1024,4096,16384,65536,262144,1048576", 5, 20000, 0, 0, 0};
    int which = -1;
    for (int i = 0; argc > 1 && i < (int)(sizeof known / sizeof *known); ++i)
        if (strcmp(argv[1], known[i].name) == 0) which = i;
    if (which < 0) return fprintf(stderr, "collective: the first argument is a collective's name\n"), 2;
    read_options(&options, "collective", argc - 1, argv + 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    counts = malloc((size_t)size * sizeof *counts), places = malloc((size_t)size * sizeof *places);
    look_up(options.ordinary);
    int dimensions[2] = {0, 0}, periodic[2] = {1, 1};
    MPI_Dims_create(size, 2, dimensions);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &torus);
    char* list = strdup(options.sizes);
    for (char* item = strtok(list, ","); item; item = strtok(NULL, ",")) measure(&options, which, atoi(item));
    free(list), free(counts), free(places);
    MPI_Comm_free(&torus);
    MPI_Finalize();
    return 0;
}
