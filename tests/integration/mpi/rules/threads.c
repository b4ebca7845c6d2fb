/* M10: MPI_THREAD_MULTIPLE. Threads of all ranks exchange at the same time: each with tags of its own, on
 * communicators of their own, all in one communicator with matched probes, collectives on communicators of
 * their own; and a thread that is blocked does not keep the others from finishing. */
#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"
#include "rules.h"

enum { THREADS = 4, OPERATIONS = 12 };

struct thread {
    pthread_t id;
    int number, peer;
    MPI_Comm comm;
};

/* Each thread trades messages of all sizes with its counterpart on the peer. */
static void* exchange(void* argument) {
    struct thread* me = argument;
    int tag = 300 + me->number;
    for (int i = 0; i < OPERATIONS; ++i) {
        int n = few_sizes[(i + me->number) % few_count];
        unsigned char *out = memory((size_t)n), *in = memory((size_t)n);
        fill(out, (size_t)n, seed_of(rank, me->number, i, n));
        MPI_Request requests[2];
        MPI_Status status, statuses[2];
        if (i % 3 == 0) {
            OK(MPI_Sendrecv(out, n, MPI_BYTE, me->peer, tag, in, n, MPI_BYTE, me->peer, tag, me->comm,
                            &status));
        } else if (i % 3 == 1) {
            OK(MPI_Irecv(in, n, MPI_BYTE, me->peer, tag, me->comm, &requests[0]));
            OK(MPI_Issend(out, n, MPI_BYTE, me->peer, tag, me->comm, &requests[1]));
            OK(MPI_Waitall(2, requests, statuses));
            status = statuses[0];
        } else {
            OK(MPI_Isend(out, n, MPI_BYTE, me->peer, tag, me->comm, &requests[0]));
            OK(MPI_Probe(me->peer, tag, me->comm, &status));
            CHECK_STATUS(&status, me->peer, tag, n);
            OK(MPI_Recv(in, n, MPI_BYTE, me->peer, tag, me->comm, &status));
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        }
        CHECK_STATUS(&status, me->peer, tag, n);
        CHECK_FILLED(in, (size_t)n, seed_of(me->peer, me->number, i, n));
        free(out), free(in);
    }
    return NULL;
}

/* Each thread's collectives on a communicator of its own, while the others do theirs. */
static void* gather(void* argument) {
    struct thread* me = argument;
    for (int i = 0; i < OPERATIONS; ++i) {
        const int n = few_sizes[(i + me->number) % few_count], root = i % size;
        unsigned char *mine = memory((size_t)n), *all = memory((size_t)n * (size_t)size);
        fill(mine, (size_t)n, seed_of(rank, me->number, i, n));
        MPI_Request request;
        OK(MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, me->comm, &request));
        int least = rank + i;
        OK(MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, me->comm));
        CHECK(least == i, "the least of the ranks' numbers is said to be %d, not %d", least, i);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        for (int other = 0; other < size; ++other)
            CHECK_FILLED(all + (size_t)n * (size_t)other, (size_t)n, seed_of(other, me->number, i, n));
        OK(MPI_Bcast(mine, n, MPI_BYTE, root, me->comm));
        CHECK_FILLED(mine, (size_t)n, seed_of(root, me->number, i, n));
        free(mine), free(all);
    }
    return NULL;
}

static void in_threads(void* (*work)(void*), int peer, const MPI_Comm* comms) {
    struct thread threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        threads[i].number = i, threads[i].peer = peer, threads[i].comm = comms[i];
        CHECK(pthread_create(&threads[i].id, NULL, work, &threads[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i].id, NULL);
}

/* All threads take messages of one tag, in whatever order: each message must be taken once and whole. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int seen[THREADS * OPERATIONS];

static void* take(void* argument) {
    struct thread* me = argument;
    for (int i = 0; i < OPERATIONS; ++i) {
        MPI_Message message;
        MPI_Status status;
        int n = -1, number = -1;
        OK(MPI_Mprobe(me->peer, 320, me->comm, &message, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &n));
        unsigned char* in = memory((size_t)n);
        OK(MPI_Mrecv(in, n, MPI_BYTE, &message, &status));
        CHECK(n >= (int)sizeof number, "a message of %d bytes was never sent", n);
        memcpy(&number, in, sizeof number);
        CHECK(number >= 0 && number < THREADS * OPERATIONS, "message number %d was never sent", number);
        CHECK_FILLED(in + sizeof number, (size_t)n - sizeof number, (uint64_t)number);
        free(in);
        pthread_mutex_lock(&lock);
        ++seen[number];
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void* give(void* argument) {
    struct thread* me = argument;
    for (int i = 0; i < OPERATIONS; ++i) {
        int number = me->number * OPERATIONS + i, n = (int)sizeof number + few_sizes[number % few_count];
        unsigned char* out = memory((size_t)n);
        memcpy(out, &number, sizeof number);
        fill(out + sizeof number, (size_t)n - sizeof number, (uint64_t)number);
        OK(MPI_Send(out, n, MPI_BYTE, me->peer, 320, me->comm));
        free(out);
    }
    return NULL;
}

static void each_once(int peer, const MPI_Comm* comms) {
    for (int turn = 0; turn < 2; ++turn) {
        memset(seen, 0, sizeof seen);
        int taker = (rank < peer) == (turn == 0);
        in_threads(taker ? take : give, peer, comms);
        for (int i = 0; taker && i < THREADS * OPERATIONS; ++i)
            CHECK(seen[i] == 1, "message %d was taken %d times", i, seen[i]);
    }
}

/* One thread waits for a message that the peer sends only after the other thread has done its work. */
static void* blocked(void* argument) {
    struct thread* me = argument;
    int value = -1;
    OK(MPI_Recv(&value, 1, MPI_INT, me->peer, 330, me->comm, MPI_STATUS_IGNORE));
    CHECK(value == me->peer, "the awaited message says %d", value);
    return NULL;
}

static void while_blocked(int peer) {
    struct thread waiter = {.peer = peer, .comm = MPI_COMM_WORLD};
    CHECK(pthread_create(&waiter.id, NULL, blocked, &waiter) == 0, "no thread");
    struct thread worker = {.peer = peer, .comm = MPI_COMM_WORLD, .number = 9};
    exchange(&worker);
    OK(MPI_Send(&rank, 1, MPI_INT, peer, 330, MPI_COMM_WORLD));
    pthread_join(waiter.id, NULL);
}

/* Procedures of the program's that MPI calls may wait for a thread that waits in MPI. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_int holds;

static void* hold(void* argument) {
    struct thread* me = argument;
    int value = 0;
    pthread_mutex_lock(&held);
    holds = 1;
    OK(MPI_Recv(&value, 1, MPI_INT, me->peer, 340, me->comm, MPI_STATUS_IGNORE));
    pthread_mutex_unlock(&held);
    return NULL;
}

static void wait_for_holder(void) {
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
}

/* Late, so that the peer's procedure waits for the holder by then. */
static void* release(void* argument) {
    struct thread* me = argument;
    usleep(20000);
    OK(MPI_Send(&rank, 1, MPI_INT, me->peer, 340, me->comm));
    return NULL;
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    wait_for_holder();
    for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static int copy(MPI_Comm comm, int key, void* extra, void* value, void* made, int* flag) {
    (void)comm, (void)key, (void)extra, (void)made, (void)value;
    wait_for_holder();
    *flag = 0;
    return MPI_SUCCESS;
}

static void reduce(void) {
    MPI_Op sum;
    int one = 1, all = 0;
    OK(MPI_Op_create(add, 1, &sum));
    OK(MPI_Allreduce(&one, &all, 1, MPI_INT, sum, MPI_COMM_WORLD));
    CHECK(all == size, "%d of %d ranks were added", all, size);
    OK(MPI_Op_free(&sum));
}

static void duplicate(void) {
    MPI_Comm made;
    MPI_Request request;
    int key;
    OK(MPI_Comm_create_keyval(copy, MPI_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    OK(MPI_Comm_free_keyval(&key));
}

#if defined(OPEN_MPI)
static int forget(MPI_Comm comm, int key, void* value, void* extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    wait_for_holder();
    return MPI_SUCCESS;
}

static int forget_type(MPI_Datatype type, int key, void* value, void* extra) {
    (void)type, (void)key, (void)value, (void)extra;
    wait_for_holder();
    return MPI_SUCCESS;
}

/* What is freed before its persistent request is freed with it. */
static void free_early(void) {
    MPI_Comm made;
    MPI_Request request;
    int key;
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    OK(MPI_Comm_set_attr(made, key, NULL));
    OK(MPI_Send_init(&key, 1, MPI_INT, (rank + size / 2) % size, 341, made, &request));
    OK(MPI_Comm_free(&made));
    OK(MPI_Request_free(&request));
    OK(MPI_Comm_free_keyval(&key));
}

static void free_type_early(void) {
    MPI_Datatype type;
    MPI_Request request;
    int key;
    OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget_type, &key, NULL));
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_set_attr(type, key, NULL));
    OK(MPI_Send_init(&key, 1, type, (rank + size / 2) % size, 341, MPI_COMM_WORLD, &request));
    OK(MPI_Type_free(&type));
    OK(MPI_Request_free(&request));
    OK(MPI_Type_free_keyval(&key));
}
#endif

/* Two more threads of each rank: one holds the mutex and waits for a message, the other sends the peer's holder one. */
static void while_held(void (*call)(void), int peer, MPI_Comm comm) {
    struct thread holder = {.peer = peer, .comm = comm}, releaser = holder;
    holds = 0;
    CHECK(pthread_create(&holder.id, NULL, hold, &holder) == 0, "no thread");
    while (!holds) usleep(1000);
    CHECK(pthread_create(&releaser.id, NULL, release, &releaser) == 0, "no thread");
    call();
    pthread_join(holder.id, NULL), pthread_join(releaser.id, NULL);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void handle(MPI_Win* of, int* code, ...) {
    (void)of, (void)code;
    wait_for_holder();
}

static MPI_Win window;

static void put_nowhere(void) {
    int one = 1;
    MPI_Put(&one, 1, MPI_INT, size + 1, 0, 1, MPI_INT,
            window); /* MPICH 5 returns MPI_SUCCESS after the handler */
}

static void with_window(int peer, MPI_Comm comm) {
    char byte;
    if (MPI_Win_create(&byte, 1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window) != MPI_SUCCESS)
        return; /* plain Open MPI 4.1 */
    MPI_Errhandler handler;
    OK(MPI_Win_create_errhandler(handle, &handler));
    OK(MPI_Win_set_errhandler(window, handler));
    OK(MPI_Win_fence(0, window));
    while_held(put_nowhere, peer, comm);
    OK(MPI_Win_fence(0, window));
    OK(MPI_Win_free(&window));
    OK(MPI_Errhandler_free(&handler));
}

/* Intel MPI and MPICH 4 call the program's procedures under a lock of theirs. */
static int library_holds_lock(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(version, &length));
    return strstr(version, "Intel") || strstr(version, "MPICH Version:\t4");
}

void rule_threads(void) {
    if (threads_given < MPI_THREAD_MULTIPLE) {
        if (rank == 0) printf("threads: nothing to test without MPI_THREAD_MULTIPLE\n");
        return;
    }
    MPI_Comm own[THREADS], world[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
        world[i] = MPI_COMM_WORLD;
    }
    in_threads(gather, rank, own);
    for (int round = 1; round<size; round += size> 2 ? size - 2 : 1) {
        int peer = partner_in(round);
        if (peer == rank) continue;
        in_threads(exchange, peer, world);
        in_threads(exchange, peer, own);
        each_once(peer, world);
        while_blocked(peer);
    }
    if (size % 2 == 0 && !library_holds_lock()) {
        while_held(reduce, rank ^ 1, own[0]);
        while_held(duplicate, rank ^ 1, own[0]);
#if defined(OPEN_MPI) /* MPICH 5 deletes attributes under a lock of its own */
        while_held(free_early, rank ^ 1, own[0]);
        while_held(free_type_early, rank ^ 1, own[0]);
#endif
        with_window(rank ^ 1, own[0]);
    }
    for (int i = 0; i < THREADS; ++i) OK(MPI_Comm_free(&own[i]));
}
