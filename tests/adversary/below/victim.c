/* A program that uses every way to make a communicator and every class of calls, for an attacker below the
 * MPI library.
 *
 *     victim [SECTION…]        all sections when none is named
 *
 * After each step of a section every rank prints "rank R SECTION.STEP DIGEST", at its end "rank R SECTION
 * DIGEST": of all that its calls returned (content, statuses, sizes, ranks, groups). An error is printed as
 * "rank R SECTION error CLASS TEXT" and ends the job. What is sent contains a text by which it is recognised
 * on the wire. "session" runs only when it is named, and says so when it is refused. Two or four ranks,
 * block-wise on two nodes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char MARKER[] = "MPISEC-BELOW-CLEAR";
enum { BLOCK = 64, LARGE = 200000, SHARES_TAG = 17 };
static const char* section = "init";
static uint64_t digest;
static int world, ranks, steps, refused;

static void take(const void* data, size_t n) {
    const unsigned char* bytes = data;
    for (size_t i = 0; i < n; ++i) digest = (digest ^ bytes[i]) * 0x100000001b3ull;
}

static void take_int(long value) {
    take(&value, sizeof value);
}

/* So that what was wrong shows even when the section never ends. */
static void step(void) {
    printf("rank %d %s.%d %016llx\n", world, section, ++steps, (unsigned long long)digest);
    fflush(stdout);
}

static void check(int code, const char* call) {
    char text[MPI_MAX_ERROR_STRING + 256] = "";
    int length, class;
    if (code == MPI_SUCCESS) return;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    for (char* at = text; *at; ++at)
        if (*at == '\n') *at = ' ';
    printf("rank %d %s error %d %s: %s\n", world, section, class, call, text);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

#define OK(call) check(call, #call)

/* From the heap, as a program's data is: what is sent from too far in memory may then be some. */
static unsigned char* next_buffer(void) {
    static unsigned char* pool[16];
    static int next;
    int i = next++ % 16;
    if (!pool[i]) pool[i] = malloc(4 * LARGE);
    if (!pool[i]) abort();
    return pool[i];
}

/* n bytes that depend on the seed, with the marker wherever there is room for it. */
static unsigned char* content(size_t n, int seed) {
    unsigned char* bytes = next_buffer();
    for (size_t i = 0; i < n; ++i) bytes[i] = (unsigned char)(i * 31 + (size_t)seed * 101 + (i >> 8));
    for (size_t i = 0; i + 32 <= n; i += 256) memcpy(bytes + i + 8, MARKER, sizeof MARKER - 1);
    return bytes;
}

static unsigned char* room(size_t n) {
    return memset(next_buffer(), 0, n);
}

static void take_status(const MPI_Status* status) {
    int count;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    take_int(status->MPI_SOURCE);
    take_int(status->MPI_TAG);
    take_int(count);
}

static void exchange(size_t n, int to, int from, int tag) {
    MPI_Status status;
    unsigned char* in = room(n);
    OK(MPI_Sendrecv(content(n, world), (int)n, MPI_BYTE, to, tag, in, (int)n, MPI_BYTE, from, tag,
                    MPI_COMM_WORLD, &status));
    take_status(&status);
    take(in, n);
    step();
}

static void small(void) {
    static const int sizes[] = {0, 4, 100, 1000};
    for (int i = 0; i < 4; ++i)
        exchange((size_t)sizes[i], (world + 1) % ranks, (world + ranks - 1) % ranks, i);
    for (int i = 0; i < 4; ++i) {
        MPI_Status status;
        int other = (world + ranks / 2) % ranks;
        unsigned char* in = room(1000);
        if (world < other)
            OK(MPI_Send(content((size_t)sizes[i], world), sizes[i], MPI_BYTE, other, i, MPI_COMM_WORLD));
        OK(MPI_Recv(in, 1000, MPI_BYTE, other, i, MPI_COMM_WORLD, &status));
        take_status(&status);
        take(in, 1000);
        step();
        if (world > other)
            OK(MPI_Ssend(content((size_t)sizes[i], world), sizes[i], MPI_BYTE, other, i, MPI_COMM_WORLD));
    }
}

static void pipelined(void) {
    int other = (world + ranks / 2) % ranks;
    exchange(30000, other, other, 1);
    exchange(LARGE, other, other, 2);
    exchange(3 * LARGE, (world + 1) % ranks, (world + ranks - 1) % ranks, 3);
}

/* Ranks of a node among themselves: what somebody on the network could forge. */
static void local(void) {
    MPI_Status status;
    int other = world ^ 1;
    if (ranks < 4) return;
    for (int i = 0; i < 6; ++i) {
        unsigned char* in = room(BLOCK);
        int any = i % 2;
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* so that messages between nodes come in between */
        if (world > other)
            OK(MPI_Send(content(BLOCK, world + i), BLOCK, MPI_BYTE, other, i, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(in, BLOCK, MPI_BYTE, any ? MPI_ANY_SOURCE : other, any ? MPI_ANY_TAG : i,
                        MPI_COMM_WORLD, &status));
        if (world < other)
            OK(MPI_Send(content(BLOCK, world + i), BLOCK, MPI_BYTE, other, i, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(in, BLOCK, MPI_BYTE, any ? MPI_ANY_SOURCE : other, any ? MPI_ANY_TAG : i,
                        MPI_COMM_WORLD, &status));
        take_status(&status);
        take(in, BLOCK);
        step();
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* so that nothing of the next section is taken for any source's */
}

/* The order of different senders is free: sums. */
static void wildcards(void) {
    enum { EACH = 3 };
    uint64_t sum = 0, next[64] = {0};
    if (world != 0) {
        for (int i = 0; i < EACH; ++i)
            OK(MPI_Send(content((size_t)(BLOCK * (i + 1)), world * 10 + i), BLOCK * (i + 1), MPI_BYTE, 0, i,
                        MPI_COMM_WORLD));
    }
    for (int i = 0; world == 0 && i < EACH * (ranks - 1); ++i) {
        MPI_Status status;
        unsigned char* in = room(EACH * BLOCK);
        OK(MPI_Recv(in, EACH * BLOCK, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        digest = 0xcbf29ce484222325ull;
        take_status(&status);
        take_int((long)next[status.MPI_SOURCE]++);
        take(in, EACH * BLOCK);
        sum += digest;
    }
    digest = sum;
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void probes(void) {
    int other = (world + ranks / 2) % ranks, count, flag;
    MPI_Status status;
    for (int i = 0; i < 4; ++i) {
        MPI_Request request;
        MPI_Message message;
        unsigned char* in = room(LARGE);
        size_t n = i == 3 ? LARGE : (size_t)(BLOCK + i);
        OK(MPI_Isend(content(n, world + i), (int)n, MPI_BYTE, other, i, MPI_COMM_WORLD, &request));
        if (i == 0) OK(MPI_Probe(other, i, MPI_COMM_WORLD, &status));
        for (flag = 0; i == 1 && !flag;) OK(MPI_Iprobe(other, i, MPI_COMM_WORLD, &flag, &status));
        if (i == 2) OK(MPI_Mprobe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
        for (flag = 0; i == 3 && !flag;) OK(MPI_Improbe(other, i, MPI_COMM_WORLD, &flag, &message, &status));
        take_status(&status);
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        if (count > LARGE) count = LARGE;
        if (i < 2)
            OK(MPI_Recv(in, count, MPI_BYTE, other, i, MPI_COMM_WORLD, &status));
        else if (i == 2)
            OK(MPI_Mrecv(in, count, MPI_BYTE, &message, &status));
        else
            OK(MPI_Mrecv(in, count, MPI_BYTE, &message, &status));
        take_status(&status);
        take(in, n);
        step();
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

static void nonblocking(void) {
    enum { MANY = 6 };
    MPI_Request requests[2 * MANY];
    MPI_Status statuses[2 * MANY];
    unsigned char* in = room(MANY * BLOCK);
    static char buffer[4096 + MPI_BSEND_OVERHEAD];
    int to = (world + ranks / 2) % ranks, index, done = 0, size;
    void* detached;
    for (int i = 0; i < MANY; ++i) {
        OK(MPI_Irecv(in + i * BLOCK, BLOCK, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]));
        if (i % 2)
            OK(MPI_Isend(content(BLOCK, world + i), BLOCK, MPI_BYTE, to, i, MPI_COMM_WORLD,
                         &requests[MANY + i]));
        else
            OK(MPI_Issend(content(BLOCK, world + i), BLOCK, MPI_BYTE, to, i, MPI_COMM_WORLD,
                          &requests[MANY + i]));
    }
    OK(MPI_Waitany(MANY, requests + MANY, &index, statuses));
    while (!done) OK(MPI_Testall(2 * MANY, requests, &done, statuses));
    for (int i = 0; i < MANY; ++i) take_status(&statuses[i]);
    take(in, MANY * BLOCK);
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Bsend(content(BLOCK, world), BLOCK, MPI_BYTE, to, 99, MPI_COMM_WORLD));
    OK(MPI_Recv(in, BLOCK, MPI_BYTE, to, 99, MPI_COMM_WORLD, statuses));
    OK(MPI_Buffer_detach(&detached, &size));
    take(in, BLOCK);
}

static void persistent(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int other = (world + ranks / 2) % ranks;
    unsigned char *in = room(BLOCK), *out = content(BLOCK, world);
    OK(MPI_Send_init(out, BLOCK, MPI_BYTE, other, 5, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_init(in, BLOCK, MPI_BYTE, other, 5, MPI_COMM_WORLD, &requests[1]));
    for (int i = 0; i < 3; ++i) {
        out[0] = (unsigned char)i;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, statuses));
        take_status(&statuses[1]);
        take(in, BLOCK);
        step();
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

/* Who is who in a communicator, and that it carries data. */
static void take_comm(MPI_Comm comm) {
    int size, rank, who[64], ring = 0;
    unsigned char* in = room(64 * BLOCK);
    MPI_Status status;
    if (comm == MPI_COMM_NULL) {
        take_int(-1);
        return;
    }
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_rank(comm, &rank));
    take_int(size);
    take_int(rank);
    OK(MPI_Gather(&world, 1, MPI_INT, who, 1, MPI_INT, 0, comm));
    OK(MPI_Bcast(who, size, MPI_INT, 0, comm));
    take(who, (size_t)size * sizeof *who);
    step();
    OK(MPI_Gather(content(BLOCK, world), BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, size - 1, comm));
    if (rank == size - 1) take(in, (size_t)(size * BLOCK));
    step();
    OK(MPI_Sendrecv(&world, 1, MPI_INT, (rank + 1) % size, 3, &ring, 1, MPI_INT, (rank + size - 1) % size, 3,
                    comm, &status));
    take_int(ring);
    take_int(status.MPI_SOURCE);
    step();
}

static void take_and_free(MPI_Comm comm) {
    take_comm(comm);
    if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
}

static void duplicates(void) {
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    take_and_free(comm);
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm));
    take_and_free(comm);
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    take_and_free(comm);
}

static void split(void) {
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - world, &comm));
    take_and_free(comm);
    OK(MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comm));
    take_and_free(comm);
    OK(MPI_Comm_split(MPI_COMM_WORLD, world == 0 ? MPI_UNDEFINED : 1, -world, &comm));
    take_and_free(comm);
}

static void split_type(void) {
    MPI_Comm comm;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world, MPI_INFO_NULL, &comm));
    take_and_free(comm);
}

static void create(void) {
    MPI_Group all, some;
    MPI_Comm comm;
    int members[2] = {ranks - 1, 0};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 2, members, &some));
    OK(MPI_Comm_create(MPI_COMM_WORLD, some, &comm));
    take_and_free(comm);
    if (world == 0 || world == ranks - 1) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, some, SHARES_TAG, &comm));
        take_and_free(comm);
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&all));
}

static void take_cart(MPI_Comm comm) {
    int dims[2] = {0}, periods[2] = {0}, coords[2] = {0}, from, to, number;
    if (comm == MPI_COMM_NULL) return;
    OK(MPI_Cartdim_get(comm, &number));
    OK(MPI_Cart_get(comm, number, dims, periods, coords));
    take_int(number);
    take(dims, sizeof dims);
    take(coords, sizeof coords);
    for (int i = 0; i < number; ++i) {
        OK(MPI_Cart_shift(comm, i, 1, &from, &to));
        take_int(from);
        take_int(to);
    }
    step();
}

static void cart(void) {
    MPI_Comm grid, line;
    int dims[2] = {2, ranks / 2}, periods[2] = {1, 0}, first[2] = {1, 0}, second[2] = {0, 1},
        in[4] = {-1, -1, -1, -1};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &grid));
    take_cart(grid);
    take_comm(grid);
    OK(MPI_Neighbor_allgather(&world, 1, MPI_INT, in, 1, MPI_INT, grid));
    take(in, sizeof in);
    OK(MPI_Cart_sub(grid, first, &line));
    take_cart(line);
    take_and_free(line);
    OK(MPI_Cart_sub(grid, second, &line));
    take_cart(line);
    take_and_free(line);
    OK(MPI_Comm_free(&grid));
}

static void graph(void) {
    MPI_Comm comm;
    int index[4], edges[8], left = (world + ranks - 1) % ranks, right = (world + 1) % ranks, in[2] = {-1, -1},
                            out[2] = {world, world * 3};
    int weights[2] = {1, 2}, source = world, degree = 2, near[2] = {left, right}, got[2], indegree, outdegree,
        weighted;
    for (int i = 0; i < ranks; ++i) {
        index[i] = 2 * (i + 1);
        edges[2 * i] = (i + ranks - 1) % ranks;
        edges[2 * i + 1] = (i + 1) % ranks;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 1, &comm));
    OK(MPI_Graph_neighbors(comm, world, 2, got));
    take(got, sizeof got);
    OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm));
    take(in, sizeof in);
    take_and_free(comm);
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, near, weights, 2, near, weights, MPI_INFO_NULL, 1,
                                      &comm));
    OK(MPI_Neighbor_allgather(&world, 1, MPI_INT, in, 1, MPI_INT, comm));
    take(in, sizeof in);
    take_and_free(comm);
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, near, weights, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &indegree, &outdegree, &weighted));
    take_int(indegree);
    take_int(outdegree);
    take_and_free(comm);
}

static void inter(void) {
    MPI_Comm half, both, merged;
    int second = world >= ranks / 2, size, sum = 0, got[64] = {0};
    OK(MPI_Comm_split(MPI_COMM_WORLD, second, world, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, second ? 0 : ranks / 2, 7, &both));
    OK(MPI_Comm_remote_size(both, &size));
    take_int(size);
    OK(MPI_Allreduce(&world, &sum, 1, MPI_INT, MPI_SUM, both));
    take_int(sum);
    OK(MPI_Allgather(&world, 1, MPI_INT, got, 1, MPI_INT, both));
    take(got, sizeof got);
    OK(MPI_Sendrecv(&world, 1, MPI_INT, world % (ranks / 2), 1, &sum, 1, MPI_INT, world % (ranks / 2), 1,
                    both, MPI_STATUS_IGNORE));
    take_int(sum);
    step();
    OK(MPI_Intercomm_merge(both, !second, &merged));
    take_and_free(merged);
    OK(MPI_Comm_dup(both, &merged));
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&both));
    OK(MPI_Comm_free(&half));
}

static void rooted(void) {
    unsigned char *in = room(64 * BLOCK), *out = content(64 * BLOCK, world);
    int counts[64], displacements[64];
    for (int i = 0; i < ranks; ++i) {
        counts[i] = BLOCK - i;
        displacements[i] = i * BLOCK;
    }
    for (int root = 0; root < ranks; root += ranks - 1) {
        unsigned char* data = content(BLOCK, root);
        OK(MPI_Bcast(world == root ? data : memset(in, 0, BLOCK), BLOCK, MPI_BYTE, root, MPI_COMM_WORLD));
        take(world == root ? data : in, BLOCK);
        OK(MPI_Gather(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, root, MPI_COMM_WORLD));
        if (world == root) take(in, (size_t)(ranks * BLOCK));
        OK(MPI_Scatter(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, root, MPI_COMM_WORLD));
        take(in, BLOCK);
        OK(MPI_Gatherv(out, counts[world], MPI_BYTE, in, counts, displacements, MPI_BYTE, root,
                       MPI_COMM_WORLD));
        if (world == root) take(in, (size_t)(ranks * BLOCK));
        OK(MPI_Scatterv(out, counts, displacements, MPI_BYTE, in, counts[world], MPI_BYTE, root,
                        MPI_COMM_WORLD));
        take(in, BLOCK);
        step();
    }
}

static void all_to_all(void) {
    unsigned char *in = room(64 * BLOCK), *out = content(64 * BLOCK, world);
    int counts[64], displacements[64];
    MPI_Datatype types[64];
    for (int i = 0; i < ranks; ++i) {
        counts[i] = BLOCK / 2;
        displacements[i] = i * BLOCK;
        types[i] = MPI_BYTE;
    }
    size_t all = (size_t)(ranks * BLOCK);
    OK(MPI_Allgather(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD));
    take(in, all);
    step();
    OK(MPI_Allgatherv(out, counts[world], MPI_BYTE, in, counts, displacements, MPI_BYTE, MPI_COMM_WORLD));
    take(in, all);
    step();
    OK(MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD));
    take(in, all);
    step();
    OK(MPI_Alltoallv(out, counts, displacements, MPI_BYTE, in, counts, displacements, MPI_BYTE,
                     MPI_COMM_WORLD));
    take(in, all);
    step();
    OK(MPI_Alltoallw(out, counts, displacements, types, in, counts, displacements, types, MPI_COMM_WORLD));
    take(in, all);
    step();
}

static void reductions(void) {
    int out[16], in[16], counts[64];
    for (int i = 0; i < 16; ++i) out[i] = world * 7 + i;
    for (int i = 0; i < ranks; ++i) counts[i] = 2;
    memset(in, 0, sizeof in);
    OK(MPI_Reduce(out, in, 16, MPI_INT, MPI_SUM, ranks - 1, MPI_COMM_WORLD));
    if (world == ranks - 1) take(in, sizeof in);
    OK(MPI_Allreduce(out, in, 16, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    take(in, sizeof in);
    OK(MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    take(in, 2 * sizeof *in);
    OK(MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    take(in, 2 * sizeof *in);
    OK(MPI_Scan(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    take(in, 4 * sizeof *in);
    memset(in, 0, sizeof in);
    OK(MPI_Exscan(out, in, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (world > 0) take(in, 4 * sizeof *in);
}

static void nonblocking_collectives(void) {
    MPI_Request requests[5];
    unsigned char *in = room(64 * BLOCK), *more = room(64 * BLOCK),
                  *shared = world == 0 ? content(BLOCK, 1) : room(BLOCK);
    int sum[4] = {0}, own[4] = {world, 1, 2, 3};
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Ibcast(shared, BLOCK, MPI_BYTE, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Iallgather(content(BLOCK, world), BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD,
                      &requests[2]));
    OK(MPI_Ialltoall(content(64 * BLOCK, world), BLOCK, MPI_BYTE, more, BLOCK, MPI_BYTE, MPI_COMM_WORLD,
                     &requests[3]));
    OK(MPI_Iallreduce(own, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[4]));
    OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
    take(shared, BLOCK);
    take(in, (size_t)(ranks * BLOCK));
    take(more, (size_t)(ranks * BLOCK));
    take(sum, sizeof sum);
}

static void persistent_collectives(void) {
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
    MPI_Request requests[2];
    int sum[4] = {0}, own[4] = {world, 1, 2, 3};
    unsigned char* shared = world == 0 ? content(BLOCK, 1) : room(BLOCK);
    OK(MPI_Bcast_init(shared, BLOCK, MPI_BYTE, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Allreduce_init(own, sum, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int i = 0; i < 2; ++i) {
        if (world == 0) shared[0] = (unsigned char)i;
        own[0] += i;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        take(shared, BLOCK);
        take(sum, sizeof sum);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
#endif
}

static void large_collectives(void) {
    enum { MANY = 40000 };
    unsigned char *data = content(MANY, 0), *in = room(4 * LARGE);
    if (world != 0) memset(data, 0, MANY);
    OK(MPI_Bcast(data, MANY, MPI_BYTE, 0, MPI_COMM_WORLD));
    take(data, MANY);
    OK(MPI_Allgather(content(MANY, world), MANY, MPI_BYTE, in, MANY, MPI_BYTE, MPI_COMM_WORLD));
    take(in, (size_t)ranks * MANY);
    OK(MPI_Allreduce(MPI_IN_PLACE, memset(in, world, MANY), MANY, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD));
    take(in, MANY);
}

/* Instead of MPI_Init and all the rest. Refused between nodes as long as nothing proves who is where; when it
 * is not refused, what is sent must not be readable. */
static void session(void) {
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
    MPI_Session session;
    MPI_Group all;
    MPI_Comm comm;
    int rank, size;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    refused =
        MPI_Group_from_session_pset(session, "mpi://WORLD", &all) != MPI_SUCCESS ||
        MPI_Comm_create_from_group(all, "below", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) != MPI_SUCCESS;
    if (!refused) {
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        unsigned char* in = room(BLOCK);
        OK(MPI_Sendrecv(content(BLOCK, rank), BLOCK, MPI_BYTE, (rank + 1) % size, 1, in, BLOCK, MPI_BYTE,
                        (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE));
        take(in, BLOCK);
        step();
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Session_finalize(&session));
#endif
}

static const struct {
    const char* name;
    void (*run)(void);
} sections[] = {
    {"small", small},
    {"large", pipelined},
    {"local", local},
    {"wildcards", wildcards},
    {"probes", probes},
    {"nonblocking", nonblocking},
    {"persistent", persistent},
    {"dup", duplicates},
    {"split", split},
    {"split_type", split_type},
    {"create", create},
    {"cart", cart},
    {"graph", graph},
    {"inter", inter},
    {"rooted", rooted},
    {"all_to_all", all_to_all},
    {"reductions", reductions},
    {"nonblocking_collectives", nonblocking_collectives},
    {"persistent_collectives", persistent_collectives},
    {"large_collectives", large_collectives},
    {"session", session},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void run_section(int i) {
    volatile int* number = dlsym(RTLD_DEFAULT, "below_section");
    section = sections[i].name;
    if (number) *number = i + 1;
    digest = 0xcbf29ce484222325ull;
    steps = 0;
    sections[i].run();
    if (refused)
        printf("rank %d %s refused\n", world, section);
    else
        printf("rank %d %s %016llx\n", world, section, (unsigned long long)digest);
    fflush(stdout);
}

static int asked_for(int argc, char** argv, const char* name) {
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], name) == 0) return 1;
    return argc == 1;
}

int main(int argc, char** argv) {
    volatile int* number = dlsym(RTLD_DEFAULT, "below_section");
    enum { SESSION = SECTIONS - 1 };
    if (argc == 2 && strcmp(argv[1], sections[SESSION].name) == 0) {
        const char *mpich = getenv("PMI_RANK"), *open_mpi = getenv("OMPI_COMM_WORLD_RANK");
        world = atoi(mpich ? mpich : open_mpi ? open_mpi : "0");
        run_section(SESSION);
        printf("rank %d end\n", world);
        return 0;
    }
    mallopt(M_MMAP_THRESHOLD, 1 << 30); /* data of all sizes beside each other, as small data is */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < SESSION; ++i)
        if (asked_for(argc, argv, sections[i].name)) run_section(i);
    if (number) *number = SECTIONS + 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    usleep(20000); /* MPICH 4.0's MPI_Finalize may hang without */
    MPI_Finalize();
    printf("rank %d end\n", world);
    return 0;
}
