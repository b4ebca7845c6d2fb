/* The sealed collectives against values worked out locally, so the same program must pass on plain MPI. Every
 * rank checks what it got; the first wrong value ends the job with a sentence. */
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm comm;
static int rank, size;
static const char* stage = "";
static int backwards; /* asked for types with a negative extent, with which reductions of plain MPICH and Open
                         MPI corrupt memory */

static void fail(int line, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED line %d, rank %d of %d, %s: ", line, rank, size, stage);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define OK(call)                                                          \
    do {                                                                  \
        int code_ = (call);                                               \
        if (code_ != MPI_SUCCESS) fail(__LINE__, "%s: %d", #call, code_); \
    } while (0)
#define CHECK(condition, ...)                          \
    do {                                               \
        if (!(condition)) fail(__LINE__, __VA_ARGS__); \
    } while (0)

static void* memory(size_t n) {
    void* p = calloc(n ? n : 1, 1);
    if (!p) fail(__LINE__, "no memory for %zu bytes", n);
    return p;
}

/* Element i of the block that rank `from` means for rank `to`. */
static int32_t value(int from, int to, int i) {
    return (int32_t)(from * 1000003 + to * 10007 + i * 7 + 1);
}
static void fill(int32_t* block, int n, int from, int to) {
    for (int i = 0; i < n; ++i) block[i] = value(from, to, i);
}
static void check(int line, const int32_t* block, int n, int from, int to) {
    for (int i = 0; i < n; ++i)
        if (block[i] != value(from, to, i))
            fail(line, "element %d of the block from %d for %d is %d, not %d", i, from, to, block[i],
                 value(from, to, i));
}
static void check_untouched(int line, const int32_t* block, int n) {
    for (int i = 0; i < n; ++i)
        if (block[i] != -1) fail(line, "a gap between blocks was written");
}

static const int counts[] = {0, 1, 1000, 16385, 70001};
enum { count_count = sizeof counts / sizeof counts[0] };

static void test_bcast(int n) {
    stage = "bcast";
    int32_t* block = memory(n * sizeof *block);
    for (int root = 0; root < size; ++root) {
        if (rank == root)
            fill(block, n, root, 0);
        else
            memset(block, 0xff, n * sizeof *block);
        OK(MPI_Bcast(block, n, MPI_INT32_T, root, comm));
        check(__LINE__, block, n, root, 0);
    }
    free(block);
}

/* Every second int: a type with holes. */
static MPI_Datatype strided(int n) {
    MPI_Datatype type;
    OK(MPI_Type_vector(n, 1, 2, MPI_INT32_T, &type));
    OK(MPI_Type_commit(&type));
    return type;
}
static void spread(int32_t* to, const int32_t* from, int n) {
    for (int i = 0; i < n; ++i) to[2 * i] = from[i];
}

static void test_derived(int n) {
    stage = "derived types";
    if (n == 0) return;
    MPI_Datatype holes = strided(n);
    int32_t *plain = memory(n * sizeof *plain), *wide = memory(2 * (size_t)n * sizeof *wide);
    for (int root = 0; root<size; root += size> 1 ? size - 1 : 1) {
        memset(wide, 0xff, 2 * (size_t)n * sizeof *wide);
        fill(plain, n, root, 3);
        if (rank == root) {
            OK(MPI_Bcast(plain, n, MPI_INT32_T, root, comm));
        } else {
            OK(MPI_Bcast(wide, 1, holes, root, comm));
            for (int i = 0; i < n; ++i) CHECK(wide[2 * i] == value(root, 3, i), "element %d", i);
            for (int i = 0; i + 1 < n; ++i) CHECK(wide[2 * i + 1] == -1, "hole %d was written", i);
        }
    }
    /* Holes on the sending side, none on the receiving side. */
    int32_t* all = memory((size_t)n * size * sizeof *all);
    fill(plain, n, rank, 0);
    spread(wide, plain, n);
    OK(MPI_Allgather(wide, 1, holes, all, n, MPI_INT32_T, comm));
    for (int i = 0; i < size; ++i) check(__LINE__, all + (size_t)i * n, n, i, 0);
    /* A user's type may put its data before the address it is given, and reductions run over such types too.
     */
    MPI_Datatype shifted;
    int length = 1, place = -1;
    OK(MPI_Type_create_indexed_block(1, length, &place, MPI_INT32_T, &shifted));
    OK(MPI_Type_commit(&shifted));
    memset(all, 0xff, (size_t)n * size * sizeof *all);
    OK(MPI_Gather(plain, 1, MPI_INT32_T, all + 1, 1, shifted, 0, comm));
    if (rank == 0)
        for (int i = 0; i < size && i < n; ++i) CHECK(all[i] == value(i, 0, 0), "shifted element of %d", i);
    OK(MPI_Type_free(&shifted));
    OK(MPI_Type_free(&holes));
    free(plain), free(wide), free(all);
}

static void test_gather(int n) {
    stage = "gather";
    int32_t *mine = memory(n * sizeof *mine), *all = memory((size_t)n * size * sizeof *all);
    for (int root = 0; root < size; ++root) {
        fill(mine, n, rank, root);
        memset(all, 0xff, (size_t)n * size * sizeof *all);
        OK(MPI_Gather(mine, n, MPI_INT32_T, rank == root ? all : NULL, n, MPI_INT32_T, root, comm));
        if (rank == root)
            for (int i = 0; i < size; ++i) check(__LINE__, all + (size_t)i * n, n, i, root);
        memset(all, 0xff, (size_t)n * size * sizeof *all);
        fill(all + (size_t)rank * n, n, rank, root);
        if (rank == root)
            OK(MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT32_T, root, comm));
        else
            OK(MPI_Gather(mine, n, MPI_INT32_T, NULL, 0, MPI_DATATYPE_NULL, root, comm));
        if (rank == root)
            for (int i = 0; i < size; ++i) check(__LINE__, all + (size_t)i * n, n, i, root);

        stage = "scatter";
        for (int i = 0; i < size; ++i) fill(all + (size_t)i * n, n, root, i);
        memset(mine, 0xff, n * sizeof *mine);
        OK(MPI_Scatter(rank == root ? all : NULL, n, MPI_INT32_T, mine, n, MPI_INT32_T, root, comm));
        check(__LINE__, mine, n, root, rank);
        memset(mine, 0xff, n * sizeof *mine);
        OK(MPI_Scatter(all, n, MPI_INT32_T, rank == root ? MPI_IN_PLACE : mine, n, MPI_INT32_T, root, comm));
        check(__LINE__, rank == root ? all + (size_t)rank * n : mine, n, root, rank);
        stage = "gather";
    }
    stage = "allgather";
    fill(mine, n, rank, 0);
    memset(all, 0xff, (size_t)n * size * sizeof *all);
    OK(MPI_Allgather(mine, n, MPI_INT32_T, all, n, MPI_INT32_T, comm));
    for (int i = 0; i < size; ++i) check(__LINE__, all + (size_t)i * n, n, i, 0);
    memset(all, 0xff, (size_t)n * size * sizeof *all);
    fill(all + (size_t)rank * n, n, rank, 0);
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, n, MPI_INT32_T, comm));
    for (int i = 0; i < size; ++i) check(__LINE__, all + (size_t)i * n, n, i, 0);
    free(mine), free(all);
}

/* Rank i has n + i elements (none when n is 0 and i even); blocks lie in reverse order with a gap of two ints
 * after each. */
static int length_of(int n, int i) {
    return n == 0 && i % 2 == 0 ? 0 : n + i;
}
static int *lengths, *places, total;
static void lay_out(int n) {
    total = 0;
    for (int i = size - 1; i >= 0; --i) {
        lengths[i] = length_of(n, i);
        places[i] = total;
        total += lengths[i] + 2;
    }
}
static void check_blocks(int line, const int32_t* all, int to) {
    for (int i = 0; i < size; ++i) {
        check(line, all + places[i], lengths[i], i, to);
        check_untouched(line, all + places[i] + lengths[i], 2);
    }
}

static void test_v(int n) {
    lengths = memory(size * sizeof *lengths), places = memory(size * sizeof *places);
    lay_out(n);
    int mine_n = lengths[rank];
    int32_t *mine = memory(mine_n * sizeof *mine), *all = memory(total * sizeof *all);
    for (int root = 0; root < size; ++root) {
        stage = "gatherv";
        fill(mine, mine_n, rank, root);
        memset(all, 0xff, total * sizeof *all);
        OK(MPI_Gatherv(mine, mine_n, MPI_INT32_T, all, rank == root ? lengths : NULL,
                       rank == root ? places : NULL, MPI_INT32_T, root, comm));
        if (rank == root) check_blocks(__LINE__, all, root);
        memset(all, 0xff, total * sizeof *all);
        fill(all + places[rank], mine_n, rank, root);
        OK(MPI_Gatherv(rank == root ? MPI_IN_PLACE : mine, mine_n, MPI_INT32_T, all, lengths, places,
                       MPI_INT32_T, root, comm));
        if (rank == root) check_blocks(__LINE__, all, root);
        stage = "scatterv";
        for (int i = 0; i < size; ++i) fill(all + places[i], lengths[i], root, i);
        memset(mine, 0xff, mine_n * sizeof *mine);
        OK(MPI_Scatterv(all, rank == root ? lengths : NULL, rank == root ? places : NULL, MPI_INT32_T, mine,
                        mine_n, MPI_INT32_T, root, comm));
        check(__LINE__, mine, mine_n, root, rank);
        OK(MPI_Scatterv(all, lengths, places, MPI_INT32_T, rank == root ? MPI_IN_PLACE : mine, mine_n,
                        MPI_INT32_T, root, comm));
        check(__LINE__, rank == root ? all + places[rank] : mine, mine_n, root, rank);
    }
    stage = "allgatherv";
    fill(mine, mine_n, rank, 0);
    memset(all, 0xff, total * sizeof *all);
    OK(MPI_Allgatherv(mine, mine_n, MPI_INT32_T, all, lengths, places, MPI_INT32_T, comm));
    check_blocks(__LINE__, all, 0);
    memset(all, 0xff, total * sizeof *all);
    fill(all + places[rank], mine_n, rank, 0);
    OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, lengths, places, MPI_INT32_T, comm));
    check_blocks(__LINE__, all, 0);

    stage = "alltoallv"; /* rank r sends n + r elements to everybody */
    int *out_lengths = memory(size * sizeof *out_lengths), *out_places = memory(size * sizeof *out_places);
    for (int i = 0; i < size; ++i) out_lengths[i] = mine_n, out_places[i] = i * (mine_n + 1);
    int32_t* out = memory((size_t)size * (mine_n + 1) * sizeof *out);
    for (int i = 0; i < size; ++i) fill(out + out_places[i], mine_n, rank, i);
    memset(all, 0xff, total * sizeof *all);
    OK(MPI_Alltoallv(out, out_lengths, out_places, MPI_INT32_T, all, lengths, places, MPI_INT32_T, comm));
    check_blocks(__LINE__, all, rank);
    /* In place the lengths are symmetric: ranks i and j exchange n + i + j. */
    for (int i = 0, at = 0; i < size; ++i) lengths[i] = n + i + rank, places[i] = at, at += lengths[i] + 2;
    int32_t* both = memory((size_t)(places[size - 1] + lengths[size - 1] + 2) * sizeof *both);
    memset(both, 0xff, (size_t)(places[size - 1] + lengths[size - 1] + 2) * sizeof *both);
    for (int i = 0; i < size; ++i) fill(both + places[i], lengths[i], rank, i);
    OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, both, lengths, places, MPI_INT32_T, comm));
    check_blocks(__LINE__, both, rank);
    free(mine), free(all), free(out), free(both), free(lengths), free(places), free(out_lengths),
        free(out_places);
}

static void test_alltoall(int n) {
    stage = "alltoall";
    size_t bytes = (size_t)n * size * sizeof(int32_t);
    int32_t *out = memory(bytes), *in = memory(bytes);
    for (int i = 0; i < size; ++i) fill(out + (size_t)i * n, n, rank, i);
    memset(in, 0xff, bytes);
    OK(MPI_Alltoall(out, n, MPI_INT32_T, in, n, MPI_INT32_T, comm));
    for (int i = 0; i < size; ++i) check(__LINE__, in + (size_t)i * n, n, i, rank);
    for (int i = 0; i < size; ++i) check(__LINE__, out + (size_t)i * n, n, rank, i);
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, n, MPI_INT32_T, comm));
    for (int i = 0; i < size; ++i) check(__LINE__, out + (size_t)i * n, n, i, rank);
    free(out), free(in);
}

/* 2x2 matrices under multiplication modulo a prime: associative, not commutative. */
typedef struct {
    int32_t a, b, c, d;
} Matrix;
static Matrix product(Matrix x, Matrix y) {
    const int64_t p = 10007;
    return (Matrix){(int32_t)(((int64_t)x.a * y.a + (int64_t)x.b * y.c) % p),
                    (int32_t)(((int64_t)x.a * y.b + (int64_t)x.b * y.d) % p),
                    (int32_t)(((int64_t)x.c * y.a + (int64_t)x.d * y.c) % p),
                    (int32_t)(((int64_t)x.c * y.b + (int64_t)x.d * y.d) % p)};
}
static void multiply(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) ((Matrix*)inout)[i] = product(((Matrix*)in)[i], ((Matrix*)inout)[i]);
}
static Matrix matrix_of(int from, int i) {
    return (Matrix){from + 2, i % 97 + 1, 3 * from + 1, i % 13 + from};
}

static void test_reduce(int n) {
    stage = "reduce";
    int64_t *mine = memory(n * sizeof *mine), *result = memory(n * sizeof *result);
    for (int i = 0; i < n; ++i) mine[i] = (int64_t)value(rank, 0, i) * (rank + 1);
#define CHECK_SUM(buffer)                                                                    \
    for (int i = 0; i < n; ++i) {                                                            \
        int64_t sum = 0;                                                                     \
        for (int r = 0; r < size; ++r) sum += (int64_t)value(r, 0, i) * (r + 1);             \
        CHECK((buffer)[i] == sum, "element %d is %lld, not %lld", i, (long long)(buffer)[i], \
              (long long)sum);                                                               \
    }
    for (int root = 0; root < size; ++root) {
        memset(result, 0xff, n * sizeof *result);
        OK(MPI_Reduce(mine, rank == root ? result : NULL, n, MPI_INT64_T, MPI_SUM, root, comm));
        if (rank == root) CHECK_SUM(result);
        memcpy(result, mine, n * sizeof *result);
        OK(MPI_Reduce(rank == root ? MPI_IN_PLACE : mine, result, n, MPI_INT64_T, MPI_SUM, root, comm));
        if (rank == root) CHECK_SUM(result);
    }
    for (int i = 0; i < n; ++i)
        CHECK(mine[i] == (int64_t)value(rank, 0, i) * (rank + 1), "the send buffer was written");
    stage = "allreduce";
    memset(result, 0xff, n * sizeof *result);
    OK(MPI_Allreduce(mine, result, n, MPI_INT64_T, MPI_SUM, comm));
    CHECK_SUM(result);
    memcpy(result, mine, n * sizeof *result);
    OK(MPI_Allreduce(MPI_IN_PLACE, result, n, MPI_INT64_T, MPI_SUM, comm));
    CHECK_SUM(result);
    free(mine), free(result);

    stage = "allreduce of doubles"; /* the same bits everywhere, though rounding depends on the order */
    double *real = memory(n * sizeof *real), *sums = memory(n * sizeof *sums), *low = memory(n * sizeof *low);
    for (int i = 0; i < n; ++i) real[i] = 1.0 / (rank + 1 + i % 17) * (i % 2 ? 1e16 : 1);
    OK(MPI_Allreduce(real, sums, n, MPI_DOUBLE, MPI_SUM, comm));
    memcpy(low, sums, n * sizeof *low);
    OK(MPI_Bcast(low, n, MPI_DOUBLE, size - 1, comm));
    CHECK(memcmp(low, sums, n * sizeof *low) == 0, "not the same bits as on the last rank");
    free(real), free(sums), free(low);

    stage = "minloc"; /* a pair type has a hole at its end on no common machine, but its own rules in
                         MPI_Reduce_local */
    struct {
        double value;
        int where;
    } pair = {100.0 - rank, rank}, best;
    OK(MPI_Allreduce(&pair, &best, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm));
    CHECK(best.where == size - 1 && best.value == 100.0 - (size - 1), "minimum at %d", best.where);

    stage = "operation that does not commute";
    MPI_Op op;
    MPI_Datatype matrix;
    OK(MPI_Op_create(multiply, 0, &op));
    OK(MPI_Type_contiguous(4, MPI_INT32_T, &matrix));
    OK(MPI_Type_commit(&matrix));
    Matrix *factors = memory(n * sizeof *factors), *products = memory(n * sizeof *products);
    for (int i = 0; i < n; ++i) factors[i] = matrix_of(rank, i);
    for (int root = 0; root < size; ++root) {
        OK(MPI_Reduce(factors, products, n, matrix, op, root, comm));
        for (int i = 0; rank == root && i < n; ++i) {
            Matrix expected = matrix_of(0, i);
            for (int r = 1; r < size; ++r) expected = product(expected, matrix_of(r, i));
            CHECK(memcmp(&expected, &products[i], sizeof expected) == 0, "product %d is out of rank order",
                  i);
        }
    }
    OK(MPI_Type_free(&matrix));
    OK(MPI_Op_free(&op));
    free(factors), free(products);
}

/* Reductions over a type with holes, whose elements follow each other at `extent` bytes: also backwards. */
static void sum_every_second(void* in, void* inout, int* n, MPI_Datatype* type) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(*type, &lower, &extent);
    for (int i = 0; i < *n; ++i) {
        int32_t *x = (int32_t*)((char*)in + i * extent), *y = (int32_t*)((char*)inout + i * extent);
        y[0] += x[0];
        y[2] += x[2];
    }
}
static void test_reduce_derived(int extent) {
    stage = "reduce of a derived type";
    enum { n = 50 };
    MPI_Datatype holes, type;
    MPI_Op op;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT32_T, &holes));
    OK(MPI_Type_create_resized(holes, 0, extent, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(sum_every_second, 1, &op));
    int32_t mine[4 * n], result[4 * n];
    const int first = extent < 0 ? 4 * (n - 1) : 0;
    for (int i = 0; i < 4 * n; ++i) mine[i] = rank + i, result[i] = -1;
    OK(MPI_Allreduce(mine + first, result + first, n, type, op, comm));
    for (int i = 0; i < 4 * n; ++i) {
        int expected = i % 2 ? -1 : size * i + size * (size - 1) / 2;
        CHECK(result[i] == expected, "element %d is %d, not %d", i, result[i], expected);
    }
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&holes));
}

/* M5: a large message is under way while everybody is in collectives. */
static void test_progress(void) {
    stage = "progress under collectives";
    enum { n = 1 << 20 };
    int32_t *in = memory(n * sizeof *in), *out = memory(n * sizeof *out);
    MPI_Request requests[2];
    int to = (rank + 1) % size, from = (rank - 1 + size) % size, sum = 0, one = 1;
    fill(out, n, rank, to);
    OK(MPI_Irecv(in, n, MPI_INT32_T, from, 5, comm, &requests[0]));
    OK(MPI_Isend(out, n, MPI_INT32_T, to, 5, comm, &requests[1]));
    OK(MPI_Barrier(comm));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size, "%d", sum);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    check(__LINE__, in, n, from, rank);
    free(in), free(out);
}

/* A collective's messages must not meet the program's receives. */
static void test_wildcards(void) {
    stage = "wildcards beside collectives";
    int32_t got = -1, sent = 77, part = 5, all = 0;
    MPI_Request request;
    OK(MPI_Irecv(&got, 1, MPI_INT32_T, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request));
    OK(MPI_Allreduce(&part, &all, 1, MPI_INT32_T, MPI_SUM, comm));
    OK(MPI_Barrier(comm));
    OK(MPI_Send(&sent, 1, MPI_INT32_T, (rank + 1) % size, 9, comm));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == 77, "a receive of the program got %d, a collective's message", got);
    CHECK(all == 5 * size, "sum %d", all);
}

#if MPI_VERSION >= 4
static void test_large_count_twins(void) {
    stage = "_c variants";
    const int n = 1000;
    size_t bytes = (size_t)n * size * sizeof(int32_t);
    int32_t *mine = memory(n * sizeof *mine), *all = memory(bytes), *out = memory(bytes);
    MPI_Count* l = memory(size * sizeof *l);
    MPI_Aint* d = memory(size * sizeof *d);
    for (int i = 0; i < size; ++i) l[i] = n, d[i] = (MPI_Aint)(size - 1 - i) * n;
#define CHECK_ALL(where, to) \
    for (int i = 0; i < size; ++i) check(__LINE__, all + (where), n, i, to)
    fill(mine, n, rank, 0);
    OK(MPI_Gatherv_c(mine, n, MPI_INT32_T, all, rank ? NULL : l, rank ? NULL : d, MPI_INT32_T, 0, comm));
    if (rank == 0) CHECK_ALL(d[i], 0);
    memset(all, 0xff, bytes);
    OK(MPI_Allgatherv_c(mine, n, MPI_INT32_T, all, l, d, MPI_INT32_T, comm));
    CHECK_ALL(d[i], 0);
    OK(MPI_Allgather_c(mine, n, MPI_INT32_T, all, n, MPI_INT32_T, comm));
    CHECK_ALL((size_t)i * n, 0);
    for (int i = 0; i < size; ++i) fill(out + d[i], n, rank, i);
    OK(MPI_Alltoallv_c(out, l, d, MPI_INT32_T, all, l, d, MPI_INT32_T, comm));
    CHECK_ALL(d[i], rank);
    OK(MPI_Scatterv_c(out, rank ? NULL : l, rank ? NULL : d, MPI_INT32_T, mine, n, MPI_INT32_T, 0, comm));
    check(__LINE__, mine, n, 0, rank);
    fill(mine, n, rank, 0);
    OK(MPI_Gather_c(mine, n, MPI_INT32_T, all, n, MPI_INT32_T, 0, comm));
    if (rank == 0) CHECK_ALL((size_t)i * n, 0);
    for (int i = 0; i < size; ++i) fill(out + (size_t)i * n, n, rank, i);
    OK(MPI_Alltoall_c(out, n, MPI_INT32_T, all, n, MPI_INT32_T, comm));
    CHECK_ALL((size_t)i * n, rank);
    OK(MPI_Scatter_c(out, n, MPI_INT32_T, mine, n, MPI_INT32_T, 0, comm));
    check(__LINE__, mine, n, 0, rank);
    OK(MPI_Bcast_c(mine, n, MPI_INT32_T, size - 1, comm));
    check(__LINE__, mine, n, 0, size - 1);
    int32_t one = 1, sum = 0;
    OK(MPI_Allreduce_c(&one, &sum, 1, MPI_INT32_T, MPI_SUM, comm));
    CHECK(sum == size, "%d", sum);
    OK(MPI_Reduce_c(&one, &sum, 1, MPI_INT32_T, MPI_SUM, 0, comm));
    free(mine), free(all), free(out), free(l), free(d);
}
#endif

/* Mistakes give MPI's error classes through the communicator's error handler. */
static void test_mistakes(void) {
    stage = "mistakes";
    int error_class = 0, data = 0;
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    int code = MPI_Bcast(&data, 1, MPI_INT, size, comm);
    CHECK(code != MPI_SUCCESS, "a root that is no rank was accepted");
    OK(MPI_Error_class(code, &error_class));
    CHECK(error_class == MPI_ERR_ROOT, "class %d for a wrong root", error_class);
    code = MPI_Reduce(&data, &data + 1, 1, MPI_INT, MPI_SUM, -7, comm);
    OK(MPI_Error_class(code, &error_class));
    CHECK(error_class == MPI_ERR_ROOT, "class %d for a wrong root", error_class);
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
}

static int spans_nodes(void) {
    MPI_Comm node;
    int here;
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &here));
    OK(MPI_Comm_free(&node));
    return here < size;
}

static void test_all(void) {
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    stage = "barrier";
    for (int i = 0; i < 5; ++i) OK(MPI_Barrier(comm));
    for (int i = 0; i < count_count; ++i) {
        test_bcast(counts[i]);
        test_derived(counts[i]);
        test_gather(counts[i]);
        test_v(counts[i]);
        test_alltoall(counts[i]);
        test_reduce(counts[i]);
    }
    test_reduce_derived(16);
    if (backwards && spans_nodes()) test_reduce_derived(-16);
    test_progress();
    test_wildcards();
#if MPI_VERSION >= 4
    test_large_count_twins();
#endif
    test_mistakes();
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    backwards = argc > 1 && strcmp(argv[1], "backwards") == 0;
    comm = MPI_COMM_WORLD;
    test_all();
    int world_rank = rank;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank,
                      &comm)); /* other sizes, reversed ranks, across nodes and not */
    test_all();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    test_all();
    OK(MPI_Comm_free(&comm));
    comm = MPI_COMM_SELF;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    test_all();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (world_rank == 0) puts("collectives: all right");
    MPI_Finalize();
    return 0;
}
