/* M9: MPI_Sendrecv and MPI_Sendrecv_replace, their non-blocking forms where the MPI has them, with different
 * sizes in the two directions, with derived types, with MPI_PROC_NULL on either side, with oneself and with
 * wildcards. All ranks at once, in rings: none may deadlock. */
#include "harness.h"
#include "rules.h"

static void ring(int shift, int n_out, int n_in, int tag) {
    int to = (rank + shift) % size, from = (rank + size - shift) % size;
    unsigned char *out = memory((size_t)n_out), *in = memory((size_t)n_in);
    fill(out, (size_t)n_out, seed_of(rank, to, tag, n_out));
    MPI_Status status;
    OK(MPI_Sendrecv(out, n_out, MPI_BYTE, to, tag, in, n_in, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, from, tag, n_out);
    CHECK_FILLED(in, (size_t)n_out, seed_of(from, rank, tag, n_out));
#ifdef HAVE_ISENDRECV
    MPI_Request request;
    memset(in, 0, (size_t)n_in);
    OK(MPI_Isendrecv(out, n_out, MPI_BYTE, to, tag, in, n_in, MPI_BYTE, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD,
                     &request));
    OK(MPI_Wait(&request, &status));
    if (!(ISENDRECV_STATUS_EMPTY && (plain_to(to) || plain_to(from))))
        CHECK_STATUS(&status, from, tag, n_out);
    CHECK_FILLED(in, (size_t)n_out, seed_of(from, rank, tag, n_out));
#endif
    free(out), free(in);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void replace(int shift, int n, int tag) {
    int to = (rank + shift) % size, from = (rank + size - shift) % size;
    unsigned char* buffer = memory((size_t)n);
    fill(buffer, (size_t)n, seed_of(rank, to, tag, n));
    MPI_Status status;
    OK(MPI_Sendrecv_replace(buffer, n, MPI_BYTE, to, tag, from, tag, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, from, tag, n);
    CHECK_FILLED(buffer, (size_t)n, seed_of(from, rank, tag, n));
#ifdef HAVE_ISENDRECV
    MPI_Request request;
    OK(MPI_Isendrecv_replace(buffer, n, MPI_BYTE, from, tag, to, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    if (!(ISENDRECV_STATUS_EMPTY && (plain_to(to) || plain_to(from)))) CHECK_STATUS(&status, to, tag, n);
    CHECK_FILLED(buffer, (size_t)n, seed_of(rank, to, tag, n));
#endif
    free(buffer);
}

/* Replaces every second integer; the ones between stay. */
static void replace_vector(int blocks) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size,
        *values = memory((size_t)blocks * 2 * sizeof(int));
    MPI_Datatype type;
    OK(MPI_Type_vector(blocks, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 2 * blocks; ++i) values[i] = rank * 1000 + i;
    OK(MPI_Sendrecv_replace(values, 1, type, to, 5, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * blocks; ++i) {
        int owner = i % 2 ? rank : from;
        if (i < 2 * blocks)
            CHECK(values[i] == owner * 1000 + i, "integer %d of a replaced vector is %d", i, values[i]);
    }
    OK(MPI_Type_free(&type));
    free(values);
}

static void with_nobody(int n) {
    int peer = (rank ^ 1) < size ? rank ^ 1 : MPI_PROC_NULL;
    unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
    MPI_Status status;
    fill(out, (size_t)n, (uint64_t)rank), memset(in, 1, (size_t)n);
    int first = rank % 2 == 0;
    OK(MPI_Sendrecv(out, n, MPI_BYTE, first ? peer : MPI_PROC_NULL, 6, in, n, MPI_BYTE,
                    first ? MPI_PROC_NULL : peer, 6, MPI_COMM_WORLD, &status));
    if (first) {
        CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    } else {
        CHECK_STATUS(&status, peer, 6, n);
        CHECK_FILLED(in, (size_t)n, (uint64_t)peer);
    }
    OK(MPI_Sendrecv_replace(out, n, MPI_BYTE, rank, 7, rank, 7, MPI_COMM_WORLD, &status));
    CHECK_FILLED(out, (size_t)n, (uint64_t)rank);
    OK(MPI_Sendrecv_replace(out, n, MPI_BYTE, MPI_PROC_NULL, 7, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &status));
    CHECK_FILLED(out, (size_t)n, (uint64_t)rank);
    free(out), free(in);
}

void rule_sendrecv(void) {
    int shifts[] = {1, size / 2, size - 1};
    for (int s = 0; s < 3; ++s) {
        if (s > 0 && (shifts[s] == shifts[s - 1] || shifts[s] == 1)) continue;
        for (int i = 0; i < size_count - (size > 4); ++i) {
            int n = sizes[i];
            ring(shifts[s], n, n, 150);
            ring(shifts[s], n, n + 1000, 151);
            replace(shifts[s], n, 152);
        }
    }
    replace_vector(10);
    replace_vector(THRESHOLD / 4 + 1);
    for (int i = 0; i < few_count; ++i) with_nobody(few_sizes[i]);
}
