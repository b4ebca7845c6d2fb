/* Communicators of processes that MPI_COMM_WORLD does not join, or not alone. Arguments: the modes, one after the
 * other:
 *
 *   session     MPI_Comm_create_from_group of all processes; before any other mode there is no MPI_Init
 *   pairs       the same of pairs across the nodes, and of each process alone
 *   groups      MPI_Intercomm_create_from_groups of the even and the odd ones
 *   again       another session, after all of the first have ended
 *   own-operation  a reduction by an operation of the program's own
 *   leave       as session, and the program ends its last session with a communicator that it did not free
 *   init        MPI_Init; what follows has a world
 *   outlive     as session, and MPI_Finalize while it goes on
 *   finalize    MPI_Finalize; what follows has no world again
 *   late        as session; before, MPI_COMM_WORLD still serves for nothing
 *   around      a session that begins before MPI_Init and has its communicators after MPI_Finalize
 *   spawn       MPI_Comm_spawn of two processes, which run this program with the mode `child`
 *   multiple    MPI_Comm_spawn_multiple of one and two
 *   alone       MPI_Comm_spawn of one by each process alone, at the same time
 *   bare        MPI_Comm_spawn of one that runs without MPIsec
 *   port        MPI_Comm_accept and MPI_Comm_connect of the even and the odd ranks
 *   socket      MPI_Comm_join of ranks 0 and 1
 *   name        MPI_Publish_name, MPI_Lookup_name, MPI_Unpublish_name
 *
 * On each, messages, collectives, windows and communicators made from it carry the marker. Says "RANK MODE fine". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <mpi.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MARKER "a marker of realms.c, not for the wire. "
#define LARGE 700000

static const char* mode = "start";
static int job_rank;

static void fail(const char* what, int line) {
    fprintf(stderr, "FAILED %s, line %d, process %d: %s\n", mode, line, job_rank, what);
    _exit(1);
}
#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))
#define OK(call) CHECK((call) == MPI_SUCCESS)

static char* marked(int n, int of) {
    char* text = malloc((size_t)n + 1);
    for (int i = 0; i < n; ++i) text[i] = MARKER[i % (int)(sizeof MARKER - 1)];
    if (n > 0) text[n - 1] = (char)('a' + of);
    return text;
}

/* A ring, small and large, named and wild, and a probe. */
static void send_around(MPI_Comm comm, int rank, int size) {
    const int sizes[] = {0, 40, 5000, LARGE}, to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < 4; ++i)
        for (int wild = 0; wild < 2; ++wild) {
            int n = sizes[i], count = -1;
            char *out = marked(n, rank), *in = calloc((size_t)n + 1, 1), *expected = marked(n, from);
            MPI_Request request;
            MPI_Status status;
            OK(MPI_Isend(out, n, MPI_CHAR, to, 100 + i, comm, &request));
            OK(MPI_Probe(wild ? MPI_ANY_SOURCE : from, 100 + i, comm, &status));
            OK(MPI_Get_count(&status, MPI_CHAR, &count));
            CHECK(count == n && status.MPI_SOURCE == from);
            OK(MPI_Recv(in, n, MPI_CHAR, wild ? MPI_ANY_SOURCE : from, 100 + i, comm, &status));
            CHECK(memcmp(in, expected, (size_t)n) == 0);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            OK(MPI_Barrier(comm));
            free(out), free(in), free(expected);
        }
}

static void add(void* in, void* inout, int* n, MPI_Datatype* type) {
    (void)type;
    for (int i = 0; i < *n; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void reduce_by_own_operation(MPI_Comm comm, int rank, int size) {
    int sum = 0;
    MPI_Op op;
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Op_free(&op));
}

static void reduce(MPI_Comm comm, int rank, int size) {
    enum { N = 20000 };
    static double mine[N], sums[N];
    struct {
        double value;
        int place;
    } own[3], largest[3];
    int sum = 0;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    for (int i = 0; i < N; ++i) mine[i] = rank + i, sums[i] = -1;
    OK(MPI_Allreduce(mine, sums, N, MPI_DOUBLE, MPI_SUM, comm));
    for (int i = 0; i < N; ++i) CHECK(sums[i] == size * (size - 1) / 2 + (double)i * size);
    for (int i = 0; i < 3; ++i) own[i].value = rank == size - 1 - i % size ? 2 : 1, own[i].place = rank;
    OK(MPI_Reduce(own, largest, 3, MPI_DOUBLE_INT, MPI_MAXLOC, 0, comm));
    for (int i = 0; i < 3 && rank == 0; ++i)
        CHECK(largest[i].value == 2 && largest[i].place == size - 1 - i % size);
}

static void collect(MPI_Comm comm, int rank, int size) {
    reduce(comm, rank, size);
    reduce_by_own_operation(comm, rank, size);
    for (int n = 50; n < 200000; n *= 20) {
        char *text = marked(n, 0), *expected = marked(n, 0), *all = malloc((size_t)n * (size_t)size);
        if (rank != size - 1) memset(text, 0, (size_t)n);
        OK(MPI_Bcast(text, n, MPI_CHAR, size - 1, comm));
        CHECK(memcmp(text, expected, (size_t)n) == 0);
        OK(MPI_Allgather(text, n, MPI_CHAR, all, n, MPI_CHAR, comm));
        for (int i = 0; i < size; ++i) CHECK(memcmp(all + i * n, expected, (size_t)n) == 0);
        free(text), free(expected), free(all);
    }
}

static void put_around(MPI_Comm comm, int rank, int size) {
    enum { N = 4000 };
    char *memory = calloc(N, 1), *mine = marked(N, rank), *expected = marked(N, (rank + size - 1) % size);
    MPI_Win win;
    OK(MPI_Win_create(memory, N, 1, MPI_INFO_NULL, comm, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, N, MPI_CHAR, (rank + 1) % size, 0, N, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memcmp(memory, expected, N) == 0);
    OK(MPI_Win_free(&win));
    free(memory), free(mine), free(expected);
}

/* In types that are never freed: when the library begins anew, their handles are those of others. */
static void send_left_type(MPI_Comm comm) {
    static int turns;
    int rank, size;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    const int n = 2000 - 7 * turns++, to = (rank + 1) % size, from = (rank + size - 1) % size;
    char *out = marked(n, rank), *in = calloc((size_t)n + 8, 1), *expected = marked(n, from);
    int count = -1;
    MPI_Datatype type;
    MPI_Status status;
    OK(MPI_Type_contiguous(n, MPI_CHAR, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Sendrecv(out, 1, type, to, 99, in, 1, type, from, 99, comm, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    CHECK(count == n && memcmp(in, expected, (size_t)n) == 0);
    for (int i = n; i < n + 8; ++i) CHECK(in[i] == 0);
    free(out), free(in), free(expected);
}

static void use(MPI_Comm comm, int deep) {
    int rank, size;
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    send_around(comm, rank, size);
    collect(comm, rank, size);
    if (!deep) return;
    MPI_Comm other;
    MPI_Request request;
    MPI_Group group;
    put_around(comm, rank, size);
    OK(MPI_Comm_dup(comm, &other));
    use(other, 0);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_idup(comm, &other, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(other, 0);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_split(comm, rank % 2, -rank, &other));
    use(other, 0);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &other));
    use(other, 0);
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Comm_create_group(comm, group, 3, &other));
    OK(MPI_Group_free(&group));
    use(other, 0);
    OK(MPI_Comm_free(&other));
}

/* Between two groups, and on what is merged of them. */
static void use_between(MPI_Comm inter, int high) {
    int rank, others;
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_remote_size(inter, &others));
    char *text = marked(300, 1), *expected = marked(300, 1);
    if (high) memset(text, 0, 300);
    OK(MPI_Bcast(text, 300, MPI_CHAR, high ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
    CHECK(memcmp(text, expected, 300) == 0);
    if (rank == 0) OK(MPI_Sendrecv_replace(text, 300, MPI_CHAR, 0, 1, 0, 1, inter, MPI_STATUS_IGNORE));
    MPI_Comm merged, copy;
    OK(MPI_Intercomm_merge(inter, high, &merged));
    use(merged, 1);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_dup(inter, &copy));
    OK(MPI_Intercomm_merge(copy, high, &merged));
    OK(MPI_Comm_free(&copy));
    OK(MPI_Barrier(merged));
    OK(MPI_Comm_disconnect(&merged));
    free(text), free(expected);
}

/* MPI_Intercomm_create of communicators from two start-ups, over one from a third. */
static void use_bridge(MPI_Comm inter, MPI_Comm own, int high) {
    MPI_Comm merged, across;
    int size, rank, others;
    OK(MPI_Intercomm_merge(inter, high, &merged));
    OK(MPI_Comm_size(own, &size));
    OK(MPI_Comm_rank(own, &rank));
    OK(MPI_Comm_remote_size(inter, &others));
    OK(MPI_Intercomm_create(own, 0, merged, high ? 0 : size, 5, &across));
    OK(MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN));
    char *text = marked(70000, rank + high), *theirs = marked(70000, rank + !high);
    if (rank < others)
        OK(MPI_Sendrecv_replace(text, 70000, MPI_CHAR, rank, 1, rank, 1, across, MPI_STATUS_IGNORE));
    CHECK(rank >= others || memcmp(text, theirs, 70000) == 0);
    free(text), free(theirs);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Intercomm_merge(across, high, &merged));
    use(merged, 0);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&across));
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
/* MPISEC_PROGRESS=thread, of a session that was granted threads. */
static int has_thread(const char* sought) {
    char path[64], name[32] = "";
    for (int i = 0, pid = (int)getpid(); i < 64; ++i) {
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", pid + i);
        FILE* file = fopen(path, "r");
        if (!file) continue;
        if (!fgets(name, sizeof name, file)) name[0] = 0;
        fclose(file);
        if (strncmp(name, sought, strlen(sought)) == 0) return 1;
    }
    return 0;
}

static MPI_Comm from_group(MPI_Group everyone, int n, const int* members, const char* tag) {
    MPI_Group group;
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Group_incl(everyone, n, members, &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    CHECK(comm != MPI_COMM_NULL);
    OK(MPI_Group_free(&group));
    return comm;
}

static void create_between(MPI_Group everyone, int rank, int size) {
    int halves[2][64], n[2] = {0, 0};
    for (int i = 0; i < size; ++i) halves[i % 2][n[i % 2]++] = i;
    MPI_Group own, other;
    MPI_Comm inter = MPI_COMM_NULL;
    OK(MPI_Group_incl(everyone, n[rank % 2], halves[rank % 2], &own));
    OK(MPI_Group_incl(everyone, n[1 - rank % 2], halves[1 - rank % 2], &other));
    OK(MPI_Intercomm_create_from_groups(own, 0, other, 0, MARKER, MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
    use_between(inter, rank % 2);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&other));
}

/* The session goes on. */
static void end_world(void) {
    int finalized = 1;
    OK(MPI_Finalized(&finalized));
    CHECK(!finalized);
    OK(MPI_Finalize());
    OK(MPI_Finalized(&finalized));
    CHECK(finalized);
}

/* It has ended. */
static void send_to_the_world(void) {
    char* text = marked(40, 0);
    CHECK(MPI_Send(text, 40, MPI_CHAR, 1 - job_rank % 2, 1, MPI_COMM_WORLD) != MPI_SUCCESS);
    free(text);
}

static void with_session(const char* what) {
    MPI_Session session;
    MPI_Group everyone;
    int rank, size, all[64];
    MPI_Info info = MPI_INFO_NULL;
    if (strcmp(what, "thread") == 0) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    }
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
    if (strcmp(what, "around") == 0) {
        OK(MPI_Init(NULL, NULL));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        end_world();
    }
    if (strcmp(what, "late") == 0) send_to_the_world();
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &everyone));
    OK(MPI_Group_rank(everyone, &rank));
    OK(MPI_Group_size(everyone, &size));
    job_rank = rank;
    for (int i = 0; i < size; ++i) all[i] = i;
    if (strcmp(what, "pairs") == 0) {
        int pair[2] = {rank % (size / 2), rank % (size / 2) + size / 2};
        MPI_Comm comm = from_group(everyone, 2, pair, "pair"), self = from_group(everyone, 1, &rank, "self");
        use(comm, 1);
        use(self, 1);
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_free(&self));
    } else if (strcmp(what, "groups") == 0) {
        create_between(everyone, rank, size);
    } else {
        MPI_Comm one = from_group(everyone, size, all, MARKER), two = from_group(everyone, size, all, MARKER);
        CHECK(strcmp(what, "thread") != 0 || has_thread("mpisec-progress"));
        send_left_type(one);
        use(one, 1);
        if (strcmp(what, "outlive") == 0) end_world();
        use(two, 0);
        OK(MPI_Comm_free(&one));
        use(two, 1);
        if (strcmp(what, "leave") != 0) OK(MPI_Comm_free(&two));
    }
    OK(MPI_Group_free(&everyone));
    OK(MPI_Session_finalize(&session));
    if (strcmp(what, "around") == 0) CHECK(!has_thread("mpisec"));
}
#else
static void with_session(const char* what) {
    (void)what;
    CHECK(!"sessions");
}
#endif

static char* program;

/* `rank` takes the environment that the lab gives its nodes, and would take LD_PRELOAD from there too. */
#define IN_THE_LAB "preload=$LD_PRELOAD; exec \"$0\" /usr/bin/env LD_PRELOAD=\"$preload\" \"$@\""

static void spawn(MPI_Comm comm, int multiple) {
    char* lab = getenv("MPISEC_LAB_RANK");
    char *arguments[] = {"-c", IN_THE_LAB, lab, program, "child", NULL}, *command = strdup("/bin/sh"),
         *commands[] = {command, command};
    char** lists[] = {arguments, arguments};
    int sizes[] = {1, 2}, errors[3], n = multiple ? 3 : 2, found;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter = MPI_COMM_NULL;
    if (comm == MPI_COMM_SELF) n = 1;
    char sh[] = "sh"; /* the library looks for it where the info says */
    OK(MPI_Info_create(&infos[1]));
    OK(MPI_Info_set(infos[1], "path", "/bin"));
    commands[1] = sh;
    if (multiple)
        OK(MPI_Comm_spawn_multiple(2, commands, lists, sizes, infos, 0, comm, &inter, errors));
    else
        OK(MPI_Comm_spawn(command, arguments, n, MPI_INFO_NULL, 0, comm, &inter, errors));
    OK(MPI_Info_free(&infos[1]));
    OK(MPI_Comm_remote_size(inter, &found));
    CHECK(found == n);
    use_between(inter, 0);
    use_bridge(inter, comm, 0);
    OK(MPI_Comm_disconnect(&inter));
    free(command);
}

/* Nothing of MPIsec's is in this child. */
static void spawn_bare(void) {
    char* arguments[] = {"-u", "LD_PRELOAD", getenv("MPISEC_LAB_RANK"), program, "bare-child", NULL};
    MPI_Comm inter = MPI_COMM_NULL;
    int code = MPI_Comm_spawn("/usr/bin/env", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                              MPI_ERRCODES_IGNORE);
    printf("came out: %d\n", code);
    if (code == MPI_SUCCESS) MPI_Send(MARKER, 40, MPI_CHAR, 0, 0, inter);
}

/* Where the root has no command that would protect the spawned program, which all must hear. */
static void spawn_without_command(void) {
    MPI_Comm inter = MPI_COMM_NULL;
    int size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &inter,
                         MPI_ERRCODES_IGNORE) != MPI_SUCCESS);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Of the start-up of MPI_COMM_WORLD alone, which has no keys when its ranks are on one node. With two nodes the leaders are not on one,
 * where MPICH 5.0 now and then loses a message (tests/library_faults.py). */
static void create_inside(int rank) {
    MPI_Comm half, across, merged;
    int size;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int high = rank >= size / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, high, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, high ? 0 : size / 2, 9, &across));
    OK(MPI_Intercomm_merge(across, high, &merged));
    use(merged, 0);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&across));
    OK(MPI_Comm_free(&half));
}

static void meet_at_port(int rank, int publish) {
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter = MPI_COMM_NULL;
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, port));
    if (rank == 0 && publish) OK(MPI_Publish_name(MARKER, MPI_INFO_NULL, port));
    OK(MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (publish) {
        OK(MPI_Lookup_name(MARKER, MPI_INFO_NULL, found));
        CHECK(strcmp(found, port) == 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) OK(MPI_Unpublish_name(MARKER, MPI_INFO_NULL, port));
    } else {
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
        if (rank % 2 == 0) OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter));
        if (rank % 2 == 1) OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter));
        use_between(inter, rank % 2);
        OK(MPI_Comm_disconnect(&inter));
        OK(MPI_Comm_free(&half));
    }
    if (rank == 0) OK(MPI_Close_port(port));
}

static void join(int rank) {
    char host[256] = "";
    int port = 0, end = -1;
    if (rank > 1) return;
    if (rank == 0) {
        struct sockaddr_in address = {.sin_family = AF_INET};
        socklen_t length = sizeof address;
        int listening = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(bind(listening, (struct sockaddr*)&address, sizeof address) == 0 && listen(listening, 1) == 0);
        CHECK(getsockname(listening, (struct sockaddr*)&address, &length) == 0);
        gethostname(host, sizeof host - 1);
        port = ntohs(address.sin_port);
        OK(MPI_Send(host, sizeof host, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Send(&port, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        end = accept(listening, NULL, NULL);
        close(listening);
    } else {
        OK(MPI_Recv(host, sizeof host, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(&port, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
        CHECK(getaddrinfo(host, NULL, &hints, &found) == 0);
        ((struct sockaddr_in*)found->ai_addr)->sin_port = htons((unsigned short)port);
        end = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(connect(end, found->ai_addr, found->ai_addrlen) == 0);
        freeaddrinfo(found);
    }
    MPI_Comm inter = MPI_COMM_NULL;
    OK(MPI_Comm_join(end, &inter));
    use_between(inter, rank);
    OK(MPI_Comm_disconnect(&inter));
    close(end);
}

static void in_world(const char* what, int rank) {
    if (strcmp(what, "bare-child") == 0) sleep(30);
    if (strcmp(what, "spawn") == 0) spawn(MPI_COMM_WORLD, 0);
    if (strcmp(what, "multiple") == 0) spawn(MPI_COMM_WORLD, 1);
    if (strcmp(what, "alone") == 0) spawn(MPI_COMM_SELF, 0);
    if (strcmp(what, "inside") == 0) create_inside(rank);
    if (strcmp(what, "bare") == 0) spawn_bare();
    if (strcmp(what, "commandless") == 0) spawn_without_command();
    if (strcmp(what, "port") == 0) meet_at_port(rank, 0);
    if (strcmp(what, "name") == 0) meet_at_port(rank, 1);
    if (strcmp(what, "socket") == 0) join(rank);
}

static void be_child(void) {
    MPI_Comm parents;
    OK(MPI_Comm_get_parent(&parents));
    CHECK(parents != MPI_COMM_NULL);
    use_between(parents, 1);
    use_bridge(parents, MPI_COMM_WORLD, 1);
    OK(MPI_Comm_disconnect(&parents));
}

int main(int argc, char** argv) {
    int world = 0, rank = 0;
    program = argv[0];
    for (int i = 1; i < argc; ++i) {
        mode = argv[i];
        const int child = strstr(mode, "child") != NULL, begins = strcmp(mode, "init") == 0 || child;
        if (begins) {
            OK(MPI_Init(&argc, &argv));
            world = 1;
            OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
            OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
            OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
            job_rank = rank;
            send_left_type(MPI_COMM_WORLD);
            use(MPI_COMM_WORLD, 0);
            if (strcmp(mode, "child") == 0) be_child();
        } else if (strcmp(mode, "finalize") == 0) {
            end_world();
            world = 0;
        } else if (strstr("session pairs groups again leave thread own-operation outlive late around",
                          mode)) {
            with_session(mode);
            if (strcmp(mode, "outlive") == 0) world = 0;
        } else {
            in_world(mode, rank);
        }
        printf("%d %s fine\n", job_rank, mode);
        fflush(stdout);
    }
    if (world) MPI_Finalize();
    return 0;
}
