/* Calls whose refusal depends on more than a communicator, and calls that must work unchanged inside a node.
 * Argument: a file to make. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
#define CHECK(condition, ...)                                             \
    do {                                                                  \
        if (!(condition)) {                                               \
            fprintf(stderr, "FAILED line %d, rank %d: ", __LINE__, rank); \
            fprintf(stderr, __VA_ARGS__);                                 \
            fputc('\n', stderr);                                          \
            MPI_Abort(MPI_COMM_WORLD, 1);                                 \
        }                                                                 \
    } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static void test_parent(void) {
    MPI_Comm parent = MPI_COMM_WORLD;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL, "a job that nobody spawned has no parent");
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
static void test_sessions(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm = MPI_COMM_NULL;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    int code = MPI_Comm_create_from_group(group, "world", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    int one = 1, sum = 0;
    CHECK(code == MPI_SUCCESS, "code %d for a session's group across nodes", code);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size, "%d", sum);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Comm_create_from_group(group, "self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == 1, "%d", sum);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
}
#endif

/* Inside a node everything is plain MPI. `comm` has ranks of this node only. */
static void test_inside(MPI_Comm comm, const char* path) {
    int here, me, mine, sum = 0, all = 0;
    OK(MPI_Comm_size(comm, &here));
    OK(MPI_Comm_rank(comm, &me));
    for (int i = 1; i <= here; ++i) all += i;
    mine = me + 1;
    MPI_Request request;
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == all, "Iallreduce %d", sum);
    OK(MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == mine * (mine + 1) / 2, "Scan %d", sum);

    MPI_Win window;
    int* base;
    OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&mine, 1, MPI_INT, (me + 1) % here, 0, 1, MPI_INT, window));
    OK(MPI_Win_fence(0, window));
    CHECK(*base == (me - 1 + here) % here + 1, "Put gave %d", *base);
    OK(MPI_Win_free(&window));

    char name[4096];
    snprintf(name, sizeof name, "%s.%d", path, rank - me);
    MPI_File file;
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file));
    OK(MPI_File_write_at_all(file, me * (MPI_Offset)sizeof mine, &mine, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(comm));
    int other = 0;
    OK(MPI_File_read_at_all(file, (me + 1) % here * (MPI_Offset)sizeof mine, &other, 1, MPI_INT,
                            MPI_STATUS_IGNORE));
    CHECK(other == (me + 1) % here + 1, "the file says %d", other);
    OK(MPI_File_close(&file));
}

/* The library calls an attribute's delete function from its own code, and this one ends in a jump to
 * MPI_Send: still a call of the program's, so still sealed. The receiver would refuse a plain message. */
static int secret = 4711;
__attribute__((optimize("O2"))) static int send_on_delete(MPI_Comm comm, int keyval, void* to, void* extra) {
    (void)comm, (void)keyval, (void)extra;
    return MPI_Send(&secret, 1, MPI_INT, (int)(long)to, 33, MPI_COMM_WORLD);
}
static void test_callback(void) {
    const int last = size - 1; /* on another node than rank 0 */
    if (rank == 0) {
        MPI_Comm comm;
        int keyval;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, send_on_delete, &keyval, NULL));
        OK(MPI_Comm_set_attr(comm, keyval, (void*)(long)last));
        OK(MPI_Comm_delete_attr(comm, keyval));
        OK(MPI_Comm_set_attr(comm, keyval, (void*)(long)last));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Comm_free_keyval(&keyval));
    } else if (rank == last) {
        for (int i = 0; i < 2; ++i) {
            int got = 0;
            OK(MPI_Recv(&got, 1, MPI_INT, 0, 33, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == secret, "got %d", got);
        }
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 1 && size > 1, "usage: guarded FILE, on two ranks and more");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_parent();
    MPI_Comm node;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    test_inside(node, argv[1]);
    OK(MPI_Comm_free(&node));
    test_inside(MPI_COMM_SELF, argv[1]);
    test_callback();
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    if (argc > 2 && strcmp(argv[2], "sessions") == 0) test_sessions();
#endif
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) puts("guarded: all right");
    MPI_Finalize();
    return 0;
}
