/* Sends random plaintext with every collective in every form, on communicators of every kind:
 *
 *     wire_collectives FILE [few]      few: blocking, on two communicators only
 *
 * Writes the plaintext to FILE and prints "slice NAME OFFSET LENGTH" for each call, as wire.c does. What a
 * rank hands on shows the slice (collective_slice.h) unless it is sealed. */
#include "../mpi/collective_slice.h"

enum { ROOM = 16 << 20 };
static unsigned char* plaintext;
static int used, count;

static unsigned char* next_slice(int n) {
    CHECK(used + n <= ROOM, "more plaintext is needed");
    used += n;
    return plaintext + used - n;
}

static void carry(enum procedure which, enum form form, const struct shape* shape, unsigned char* slice,
                  int n) {
    struct slice_call call;
    if (shape->comm == MPI_COMM_NULL) return;
    OK(begin_slice(&call, which, form, shape, slice, n, 0));
    OK(end_slice(&call));
    for (int i = 0; i < call.received; ++i)
        CHECK(memcmp(call.in + (size_t)n * (size_t)i, slice, (size_t)n) == 0,
              "%s of %d bytes on %s, form %d: block %d is not what was sent", procedure_names[which], n,
              shape->name, form, i);
    free_slice(&call);
}

int main(int argc, char** argv) {
    static const int kinds[] = {0, 2, 1, 3, 12, BETWEEN_GROUPS}, grid = 8;
    static const char* const forms[] = {"", "I", "init-"};
    struct shape shapes[SHAPES];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 1, "wire_collectives FILE [few]");
    int few = argc > 2, last_form = few ? BLOCKING : NONBLOCKING;
#ifdef HAVE_PERSISTENT_COLLECTIVES
    if (!few) last_form = PERSISTENT;
#endif
    plaintext = memory(ROOM);
    fill(plaintext, ROOM, 20261122);
    make_shapes(shapes);
    for (int which = BCAST; which < PROCEDURES; ++which) {
        int on_grid = which >= FIRST_NEIGHBOR, scans = which == SCAN || which == EXSCAN;
        int large = block_of(which, 300 * 1024, size);
        unsigned char* large_slice = next_slice(large);
        if (rank == 0) printf("slice %s-large %d %d\n", procedure_names[which], used - large, large);
        ++count;
        for (int form = BLOCKING; form <= last_form; ++form) {
            if (form != PERSISTENT) carry(which, form, &shapes[on_grid ? grid : 0], large_slice, large);
            for (int k = 0; k < (on_grid ? 1 : few ? 2 : 6); ++k) {
                const struct shape* shape = &shapes[on_grid ? grid : kinds[k]];
                if (scans && kinds[k] == BETWEEN_GROUPS) continue;
                if (!shape->spans_nodes) continue; /* nothing of it is on the wire; alike on all ranks */
                for (int i = 0; i < 2; ++i) {
                    int n = i == 0 ? 64 : 5 * 1024;
                    unsigned char* slice = next_slice(n);
                    if (rank == 0)
                        printf("slice MPI_%s%s-on-%s %d %d\n", forms[form], procedure_names[which],
                               shape->name, used - n, n);
                    ++count;
                    carry(which, form, shape, slice, n);
                }
            }
        }
    }
    free_shapes(shapes);
    if (rank == 0) {
        FILE* file = fopen(argv[1], "wb");
        CHECK(file && fwrite(plaintext, 1, (size_t)used, file) == (size_t)used && fclose(file) == 0,
              "cannot write %s", argv[1]);
        printf("wire: %d slices\n", count);
    }
    free(plaintext);
    MPI_Barrier(
        MPI_COMM_WORLD); /* and a moment: MPICH 4.0.2 may hang in MPI_Finalize otherwise (docs/lab.md) */
    sleep_seconds(0.02);
    MPI_Finalize();
    return 0;
}
