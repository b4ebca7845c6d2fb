/* What a program sees whose collectives are attacked (adversary.c):
 *
 *     victim_collectives SCENARIO BYTES SHAPE NAME[,NAME…]      all names: all
 *
 * SCENARIO   one       a blocking collective             nonblocking, persistent   in that form
 *            again     two of one kind, one after the other: the second is attacked
 *            together  two non-blocking ones under way at once, on a communicator and its duplicate
 * SHAPE      number of a communicator in collective_comms.c; neighbourhood collectives take the ring
 *
 * For each collective every rank prints "rank R NAME K: " and "as sent", "OTHER CONTENT" or "error TEXT",
 * then how long it took and "buffer clean" or "buffer FOREIGN": bytes that are neither what was sent, nor
 * what was there before, nor zero. "after" is an allreduce that is left alone. Errors are returned. */
#define _GNU_SOURCE
#include "armed.h"

#include "../integration/mpi/collective_slice.h"

enum { PREFILL = 0xC3, RING = 8 };
static const char* scenario;

static void disarm_after(const char* name) {
    int frames = 0, segments = 0;
    if (disarm(&frames, &segments))
        printf("adversary: rank %d %s passed %d\n", rank, name, frames + segments);
}

/* Never zero nor PREFILL, nor one bit away from these. */
static unsigned char* content(int number, int n) {
    unsigned char* bytes = memory((size_t)n);
    for (int i = 0; i < n; ++i) {
        unsigned x = (unsigned)i * 2654435761u + (unsigned)number * 40503u;
        bytes[i] = (unsigned char)(16 + (x >> 13) % 128);
    }
    return bytes;
}

static void tell(const struct slice_call* call, int number, int code, double seconds) {
    int foreign = 0, right = 1, length;
    size_t n = (size_t)call->n, whole = n * (size_t)call->received;
    for (size_t i = 0; i < call->room; ++i) {
        int as_sent = i < whole && call->in[i] == call->slice[i % n];
        right &= as_sent || i >= whole;
        foreign += !as_sent && call->in[i] != PREFILL && call->in[i] != 0;
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    for (char* c = text; *c; ++c)
        if (*c == '\n') *c = ' ';
    printf("rank %d %s %d: %s%s; %.1f s; buffer %s\n", rank, procedure_names[call->procedure], number,
           code != MPI_SUCCESS ? "error "
           : right             ? "as sent"
                               : "OTHER CONTENT",
           text, seconds, foreign ? "FOREIGN" : "clean");
    fflush(stdout);
}

static void attacked(enum procedure which, const struct shape* shape, int n) {
    struct shape other = *shape;
    struct slice_call calls[2];
    int together = strcmp(scenario, "together") == 0, again = strcmp(scenario, "again") == 0;
    int count = together || again ? 2 : 1, codes[2];
    enum form form = together || strcmp(scenario, "nonblocking") == 0 ? NONBLOCKING
                     : strcmp(scenario, "persistent") == 0            ? PERSISTENT
                                                                      : BLOCKING;
    unsigned char* slices[2];
    OK(MPI_Comm_dup(shape->comm, &other.comm));
    double start = now();
    for (int k = 0; k < count; ++k) {
        const struct shape* on = k == 1 && together ? &other : shape;
        slices[k] = content((int)which * 2 + k, n);
        if (k == 0 || again) arm();
        codes[k] = begin_slice(&calls[k], which, form, on, slices[k], n, PREFILL);
        if (!together && codes[k] == MPI_SUCCESS) codes[k] = end_slice(&calls[k]);
        if (!together) disarm_after(procedure_names[which]);
    }
    for (int k = 0; together && k < count; ++k)
        if (codes[k] == MPI_SUCCESS) codes[k] = end_slice(&calls[k]);
    if (together) disarm_after(procedure_names[which]);
    for (int k = 0; k < count; ++k) {
        tell(&calls[k], k + 1, codes[k], now() - start);
        free_slice(&calls[k]), free(slices[k]);
    }
    OK(MPI_Comm_free(&other.comm));
    int mine = rank, most = -1, code = MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    printf("rank %d %s after: %s\n", rank, procedure_names[which],
           code == MPI_SUCCESS && most == size - 1 ? "fine" : "BROKEN");
    fflush(stdout);
}

static int wanted(const char* names, const char* name) {
    char list[1024], *one;
    if (strcmp(names, "all") == 0) return 1;
    snprintf(list, sizeof list, "%s", names);
    for (one = strtok(list, ","); one; one = strtok(NULL, ","))
        if (strcmp(one, name) == 0) return 1;
    return 0;
}

int main(int argc, char** argv) {
    struct shape shapes[SHAPES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 5) return 2;
    scenario = argv[1];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    make_shapes(shapes);
    for (int i = 0; i < SHAPES; ++i)
        if (shapes[i].comm != MPI_COMM_NULL) OK(MPI_Comm_set_errhandler(shapes[i].comm, MPI_ERRORS_RETURN));
    leave_node_alone(rank);
    for (int which = BARRIER; which < PROCEDURES; ++which) {
        int on_grid = which >= FIRST_NEIGHBOR;
        const struct shape* shape = &shapes[on_grid ? RING : atoi(argv[3])];
        if (!wanted(argv[4], procedure_names[which]) || shape->comm == MPI_COMM_NULL) continue;
        if (shape->remote && (which == SCAN || which == EXSCAN)) continue;
        attacked(which, shape, block_of(which, atoi(argv[2]), size));
    }
    free_shapes(shapes);
    printf("rank %d: done\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
