/* M11: a communicator has the error handler of the one it is made from, whichever constructor makes it; and
 * what is wrong with a non-blocking or persistent call is reported by that call. */
#include "harness.h"
#include "rules.h"

static void check_mistakes(MPI_Comm comm, const char* constructor) {
    MPI_Request request;
    int data = 0, remote = 0, inter = 0;
    OK(MPI_Comm_test_inter(comm, &inter));
    OK(inter ? MPI_Comm_remote_size(comm, &remote) : MPI_Comm_size(comm, &remote));
    CHECK(class_of(MPI_Isend(&data, 1, MPI_INT, remote, 1, comm, &request)) == MPI_ERR_RANK,
          "a message to rank %d of a communicator of %s is no error", remote, constructor);
    CHECK(class_of(MPI_Isend(&data, 1, MPI_DATATYPE_NULL, remote - 1, 1, comm, &request)) == MPI_ERR_TYPE,
          "MPI_Isend of no datatype");
    CHECK(class_of(MPI_Irecv(&data, 1, MPI_DATATYPE_NULL, remote - 1, 1, comm, &request)) == MPI_ERR_TYPE,
          "MPI_Irecv of no datatype");
    CHECK(class_of(MPI_Send_init(&data, 1, MPI_DATATYPE_NULL, remote - 1, 1, comm, &request)) == MPI_ERR_TYPE,
          "MPI_Send_init of no datatype");
    CHECK(class_of(MPI_Recv_init(&data, 1, MPI_DATATYPE_NULL, remote - 1, 1, comm, &request)) == MPI_ERR_TYPE,
          "MPI_Recv_init of no datatype");
}

static int refused;
static void go_on(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++refused;
}

/* There is no buffer, so the first message is not sent, and no receive gets it. (Open MPI plain sends short ones all the same.) */
static void buffered_without_room(void) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    int out = rank, in = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(go_on, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    refused = 0;
    MPI_Bsend(&out, 1, MPI_INT, to, 3, comm);
    int sent = refused == 0, comes = 0;
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, to, 4, &comes, 1, MPI_INT, from, 4, comm, MPI_STATUS_IGNORE));
    if (comes) OK(MPI_Recv(&in, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE));
    out += 1000;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, to, 3, &in, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE));
    CHECK(in == from + 1000, "after a failed MPI_Bsend came %d", in);
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Comm_free(&comm));
}

static int handled, others;
static void handle(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    handled += class_of(*code) == MPI_ERR_TRUNCATE;
    others += class_of(*code) != MPI_ERR_TRUNCATE;
}

/* A message that is too long, from a rank of the same node. (MPICH 4.0 and Intel MPI call MPI_COMM_WORLD's handler for errors of requests.) */
static void inside_the_node(void) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
    return;
#endif
    if (library_is("Intel")) return;
    const int other = rank ^ 1;
    MPI_Comm copy;
    MPI_Errhandler handler;
    int out[4] = {0}, in[4] = {0};
    OK(MPI_Comm_create_errhandler(handle, &handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_set_errhandler(copy, handler));
    OK(MPI_Errhandler_free(&handler));
    handled = others = 0;
    if (other < size && is_local(other) && !OVERRUNS_SHORT_BUFFERS) {
        if (rank < other) OK(MPI_Send(out, 4, MPI_INT, other, 4, copy));
        (void)MPI_Recv(in, 1, MPI_INT, other, 4, copy, MPI_STATUS_IGNORE);
        if (rank > other) OK(MPI_Send(out, 4, MPI_INT, other, 4, copy));
        CHECK(handled > 0 && others == 0, "the handler was called %d times, and %d for another error",
              handled, others);
    }
    OK(MPI_Comm_free(&copy));
}

static int not_opened;
static void handle_file(MPI_File* file, int* code, ...) {
    (void)file, (void)code;
    ++not_opened;
}

/* The handler that errors of opening go to stays what the program has made it. */
static void of_no_file(void) {
    MPI_Errhandler handler, after;
    MPI_File file;
    OK(MPI_File_create_errhandler(handle_file, &handler));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
    for (int i = 0; i < 2; ++i) {
        not_opened = 0;
        (void)MPI_File_open(MPI_COMM_WORLD, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        OK(MPI_File_get_errhandler(MPI_FILE_NULL, &after));
        CHECK(not_opened > 0 && after == handler, "the handler was called %d times, and is %s", not_opened,
              after == handler ? "the same" : "another one");
        OK(MPI_Errhandler_free(&after));
    }
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&handler));
    const int code =
        class_of(MPI_File_open(MPI_COMM_WORLD, "/proc/version",
                               MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK(code == MPI_ERR_FILE_EXISTS || code == MPI_ERR_ACCESS, "a file that exists is error class %d",
          code);
}

/* What goes wrong on a communicator after MPI_Comm_free is told to its handler. */
static void of_a_freed_one(void) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const int left_is_odd = plain_to(left) && (TRUNCATION_HANGS || OVERRUNS_SHORT_BUFFERS);
    MPI_Comm copy;
    MPI_Errhandler handler;
    MPI_Request receive = MPI_REQUEST_NULL;
    int out[4] = {0}, in[4] = {0};
    OK(MPI_Comm_create_errhandler(handle, &handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_set_errhandler(copy, handler));
    OK(MPI_Errhandler_free(&handler));
    handled = 0;
    OK(MPI_Irecv(in, left_is_odd ? 4 : 1, MPI_INT, left, 3, copy, &receive));
    OK(MPI_Barrier(copy));
    OK(MPI_Send(out, 4, MPI_INT, right, 3, copy));
    OK(MPI_Comm_free(&copy));
    (void)MPI_Wait(&receive, MPI_STATUS_IGNORE); /* MPICH returns success when it has called the handler */
    CHECK(handled == !left_is_odd, "the handler was called %d times", handled);
}

static int becomes;
static void change_of_communicator(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    *code = becomes;
}
static void change_of_window(MPI_Win* win, int* code, ...) {
    (void)win;
    *code = becomes;
}
static void change_of_file(MPI_File* file, int* code, ...) {
    (void)file;
    *code = becomes;
}

/* A call returns what the handler has made of the code. (Plain libraries do so in some procedures only; MPICH 5 returns success after any
 * handler.) */
static void changed_by_the_handler(void) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Comm copy;
    MPI_Win win;
    MPI_File file;
    MPI_Errhandler of_comm, of_win, of_file;
    int data[4] = {0}, crosses = 0;
    for (int other = 0; other < size; ++other) crosses |= !plain_to(other);
    if (!crosses) return;
    OK(MPI_Comm_create_errhandler(change_of_communicator, &of_comm));
    OK(MPI_Win_create_errhandler(change_of_window, &of_win));
    OK(MPI_File_create_errhandler(change_of_file, &of_file));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_set_errhandler(copy, of_comm));
    OK(MPI_Win_create(data, sizeof data, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, of_win));
    OK(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    OK(MPI_File_set_errhandler(file, of_file));
    for (int i = 0; i < 2; ++i) {
        const int want = becomes = i ? MPI_ERR_OTHER : MPI_SUCCESS;
        int got[] = {MPI_Send(data, 1, MPI_INT, size, 5, copy), MPI_Bcast(data, 1, MPI_INT, size, copy),
                     MPI_Put(data, 1, MPI_INT, size, 0, 1, MPI_INT, win),
                     MPI_File_seek_shared(file, -1, MPI_SEEK_SET), want};
        int in[4];
        MPI_Request receive;
        OK(MPI_Irecv(in, plain_to(left) ? 4 : 1, MPI_INT, left, 5, copy, &receive));
        OK(MPI_Send(data, 4, MPI_INT, right, 5, copy));
        if (plain_to(left))
            OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        else
            got[4] = MPI_Wait(&receive, MPI_STATUS_IGNORE);
        for (int call = 0; call < 5; ++call)
            CHECK(got[call] == want, "call %d returns %d, and the handler left %d", call, got[call], want);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
    CHECK(class_of(MPI_Send(data, 1, MPI_INT, size, 5, copy)) == MPI_ERR_RANK,
          "what an earlier handler left is returned");
    OK(MPI_Errhandler_free(&of_comm));
    OK(MPI_Errhandler_free(&of_win));
    OK(MPI_Errhandler_free(&of_file));
    OK(MPI_File_close(&file));
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&copy));
}

void rule_error_handlers(void) {
    MPI_Comm parent, made;
    int dims = size;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &parent));
    OK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
    OK(MPI_Comm_split(parent, 0, -rank, &made));
    check_mistakes(made, "MPI_Comm_split");
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
    check_mistakes(made, "MPI_Comm_split_type");
    OK(MPI_Comm_free(&made));
    OK(MPI_Cart_create(parent, 1, &dims, &dims, 1, &made));
    check_mistakes(made, "MPI_Cart_create");
    OK(MPI_Comm_free(&made));
    if (size > 1) {
        MPI_Comm half, inter;
        OK(MPI_Comm_split(parent, rank % 2, rank, &half));
        OK(MPI_Intercomm_create(half, 0, parent, 1 - rank % 2, 6, &inter));
        check_mistakes(inter, "MPI_Intercomm_create");
        OK(MPI_Comm_dup(inter, &made));
        check_mistakes(made, "MPI_Comm_dup between two groups");
        OK(MPI_Comm_free(&made));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_free(&half));
    }
    OK(MPI_Comm_free(&parent));
    inside_the_node();
    of_no_file();
    of_a_freed_one();
    buffered_without_room();
    changed_by_the_handler();
}
