/* Persistent collectives as Open MPI 4 named them before MPI 4 did: each gives what the blocking one gives, started three times. */
#include <mpi.h>

#include <mpi-ext.h> /* needs the other */
#include <stdio.h>
#include <string.h>

enum { ROOM = 4096, EACH = 600, ROOT = 1 };
static int sent[ROOM], got[ROOM], expected[ROOM];
static int counts[16], places[16], byte_places[16];
static MPI_Aint far_places[16];
static MPI_Datatype types[16];

static void fill(int rank, int round) {
    memset(got, 0, sizeof got);
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < ROOM; ++i) sent[i] = 1000 * rank + 100 * round + i;
    memcpy((char*)sent + 8, "EARLIER-NAME-MARK", 17);
    memcpy(got, sent, 64);
    memcpy(expected, sent, 64);
}

/* EQUAL(name, arguments): `to` stands for where the result goes. */
#define EQUAL(name, comm, ...)                                                                    \
    do {                                                                                          \
        MPI_Request request;                                                                      \
        int* to = got;                                                                            \
        MPIX_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request);                           \
        for (int round = 0; round < 3; ++round) {                                                 \
            fill(rank, round);                                                                    \
            to = expected;                                                                        \
            MPI_##name(__VA_ARGS__, comm);                                                        \
            MPI_Start(&request);                                                                  \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                \
            if (memcmp(got, expected, sizeof got) != 0) printf("%s differs\n", #name), wrong = 1; \
        }                                                                                         \
        MPI_Request_free(&request);                                                               \
    } while (0)

int main(int argc, char** argv) {
    int rank, size, wrong = 0;
    const MPI_Datatype number = MPI_INT;
    MPI_Comm all = MPI_COMM_WORLD, ring;
    MPI_Request barrier;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Cart_create(all, 1, &size, &(int){1}, 0, &ring);
    for (int i = 0; i < 16; ++i) {
        counts[i] = EACH;
        places[i] = i * EACH;
        byte_places[i] = far_places[i] = i * EACH * (int)sizeof(int);
        types[i] = number;
    }
    EQUAL(Allgather, all, sent, EACH, number, to, EACH, number);
    EQUAL(Allgatherv, all, sent, EACH, number, to, counts, places, number);
    EQUAL(Allreduce, all, sent, to, EACH, number, MPI_SUM);
    EQUAL(Alltoall, all, sent, EACH, number, to, EACH, number);
    EQUAL(Alltoallv, all, sent, counts, places, number, to, counts, places, number);
    EQUAL(Alltoallw, all, sent, counts, byte_places, types, to, counts, byte_places, types);
    EQUAL(Bcast, all, to, EACH, number, ROOT);
    EQUAL(Exscan, all, sent, to, EACH, number, MPI_SUM);
    EQUAL(Gather, all, sent, EACH, number, to, EACH, number, ROOT);
    EQUAL(Gatherv, all, sent, EACH, number, to, counts, places, number, ROOT);
    EQUAL(Neighbor_allgather, ring, sent, EACH, number, to, EACH, number);
    EQUAL(Neighbor_allgatherv, ring, sent, EACH, number, to, counts, places, number);
    EQUAL(Neighbor_alltoall, ring, sent, EACH, number, to, EACH, number);
    EQUAL(Neighbor_alltoallv, ring, sent, counts, places, number, to, counts, places, number);
    EQUAL(Neighbor_alltoallw, ring, sent, counts, far_places, types, to, counts, far_places, types);
    EQUAL(Reduce, all, sent, to, EACH, number, MPI_SUM, ROOT);
    EQUAL(Reduce_scatter_block, all, sent, to, EACH, number, MPI_SUM);
    EQUAL(Reduce_scatter, all, sent, to, counts, number, MPI_SUM);
    EQUAL(Scan, all, sent, to, EACH, number, MPI_SUM);
    EQUAL(Scatter, all, sent, EACH, number, to, EACH, number, ROOT);
    EQUAL(Scatterv, all, sent, counts, places, number, to, EACH, number, ROOT);
    MPIX_Barrier_init(all, MPI_INFO_NULL, &barrier);
    MPI_Start(&barrier);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    MPI_Request_free(&barrier);
    if (!wrong) printf("right\n");
    fflush(stdout);
    MPI_Comm_free(&ring);
    MPI_Barrier(all);
    MPI_Finalize();
    return wrong;
}
