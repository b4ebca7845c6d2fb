/* M5: no procedure keeps a large message from moving. For each that may wait inside the MPI library:
 *
 *     node A: `waiter` starts a send of 64 MiB to `far`, then makes the call, which waits for `helper`
 *             `helper` does its part of the call only when `far` says that it has the message
 *     node B: `far` receives the message, then tells `helper`
 *
 * blocking_calls DIRECTORY LIMIT [--single] [CASE…]: prints "ok CASE" for each, "hung CASE" when a case
 * takes more than LIMIT seconds. --list prints the cases that this MPI has. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "harness.h"

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define HAVE_COMM_BUFFERS 1
#endif

enum { BIG = 64 << 20, TAG = 80, RECEIPT = 81, BUFFERED = 1 << 20 };

static MPI_Comm pair; /* waiter (rank 0) and helper (rank 1) */
static MPI_Comm dup_of_pair, made;
static MPI_Group other; /* the other one of the two */
static MPI_Win window;
static MPI_File file;
static MPI_Request request;
static int *cell, me, room[64];
static char file_name[4096];
static void* attached;

/* ---- One-sided communication ---- */

static void make_window(void) {
    MPI_Group both;
    int peer = 1 - me;
    OK(MPI_Win_allocate(64 * sizeof(int), sizeof(int), MPI_INFO_NULL, pair, &cell, &window));
    memset(cell, 0, 64 * sizeof(int));
    OK(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    OK(MPI_Comm_group(pair, &both));
    OK(MPI_Group_incl(both, 1, &peer, &other));
    OK(MPI_Group_free(&both));
    OK(MPI_Barrier(pair));
}
static void free_window(void) {
    OK(MPI_Group_free(&other));
    OK(MPI_Win_free(&window));
}
static void only_free_window(void) {
    OK(MPI_Win_free(&window));
}
static void expose_and_wait(void) {
    OK(MPI_Win_post(other, 0, window));
    OK(MPI_Win_wait(window));
}
static void expose_and_test(void) {
    OK(MPI_Win_post(other, 0, window));
    for (int flag = 0; !flag;) OK(MPI_Win_test(window, &flag));
}
static void start_put_complete(void) {
    int one = 1;
    OK(MPI_Win_start(other, 0, window));
    OK(MPI_Put(&one, 1, MPI_INT, 1 - me, 0, 1, MPI_INT, window));
    OK(MPI_Win_complete(window));
}
static void lock_and_unlock(int kind) {
    int one = 1;
    OK(MPI_Win_lock(kind, 1, 0, window));
    OK(MPI_Put(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, window));
    OK(MPI_Win_unlock(1, window));
}
static void lock_exclusive(void) {
    lock_and_unlock(MPI_LOCK_EXCLUSIVE);
}
static void lock_shared(void) {
    lock_and_unlock(MPI_LOCK_SHARED);
}
static void lock_and_unlock_all(void) {
    OK(MPI_Win_lock_all(0, window));
    OK(MPI_Win_unlock_all(window));
}
static void hold(int kind) {
    make_window();
    if (me == 1) OK(MPI_Win_lock(kind, 1, 0, window));
}
static void hold_exclusive(void) {
    hold(MPI_LOCK_EXCLUSIVE);
}
static void hold_shared(void) {
    hold(MPI_LOCK_SHARED);
}
static void hold_all(void) {
    make_window();
    if (me == 1) OK(MPI_Win_lock_all(0, window));
}
static void let_go(void) {
    OK(MPI_Win_unlock(1, window));
}
static void let_all_go(void) {
    OK(MPI_Win_unlock_all(window));
}
/* The waiter looks again and again whether the helper has set its cell. */
static void all_lock_all(void) {
    make_window();
    OK(MPI_Win_lock_all(0, window));
}
static void unlock_all_and_free(void) {
    OK(MPI_Win_unlock_all(window));
    free_window();
}
static void poll_with(int (*flush)(MPI_Win), int (*flush_rank)(int, MPI_Win)) {
    int zero = 0;
    for (int seen = 0; !seen;) {
        OK(MPI_Fetch_and_op(&zero, &seen, MPI_INT, 1, 0, MPI_NO_OP, window));
        OK(flush ? flush(window) : flush_rank(1, window));
    }
}
static void poll_flush(void) {
    poll_with(NULL, MPI_Win_flush);
}
static void poll_flush_local(void) {
    poll_with(NULL, MPI_Win_flush_local);
}
static void poll_flush_all(void) {
    poll_with(MPI_Win_flush_all, NULL);
}
static void poll_flush_local_all(void) {
    poll_with(MPI_Win_flush_local_all, NULL);
}
static void poll_unlock(void) {
    int zero = 0;
    for (int seen = 0; !seen;) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
        OK(MPI_Fetch_and_op(&zero, &seen, MPI_INT, 1, 0, MPI_NO_OP, window));
        OK(MPI_Win_unlock(1, window));
    }
}
static void poll_unlock_all(void) {
    int zero = 0;
    for (int seen = 0; !seen;) {
        OK(MPI_Win_lock_all(0, window));
        OK(MPI_Fetch_and_op(&zero, &seen, MPI_INT, 1, 0, MPI_NO_OP, window));
        OK(MPI_Win_unlock_all(window));
    }
}
static void poll_complete(void) { /* needs one exposure for each look */
    int zero = 0;
    for (int seen = 0; !seen;) {
        OK(MPI_Win_start(other, 0, window));
        OK(MPI_Fetch_and_op(&zero, &seen, MPI_INT, 1, 0, MPI_NO_OP, window));
        OK(MPI_Win_complete(window));
    }
}
static void set_cell(void) {
    int one = 1, before;
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT, 1, 0, MPI_REPLACE, window));
    OK(MPI_Win_flush(1, window));
}
static void lock_and_set_cell(void) {
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
    set_cell();
    OK(MPI_Win_unlock(1, window));
}
static void set_and_expose(void) {
    *cell = 1;
    expose_and_wait();
}
static void fence(void) {
    OK(MPI_Win_fence(0, window));
}
static void set_info_of_window(void) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "false"));
    OK(MPI_Win_set_info(window, info));
    OK(MPI_Info_free(&info));
}
static void window_create(void) {
    OK(MPI_Win_create(room, sizeof room, sizeof(int), MPI_INFO_NULL, pair, &window));
}
static void window_allocate(void) {
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, pair, &cell, &window));
}
static void window_allocate_shared(void) {
    OK(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, pair, &cell, &window));
}
static void window_create_dynamic(void) {
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, pair, &window));
}
static void free_group_of_other(void) {
    OK(MPI_Group_free(&other));
}

/* ---- Files ---- */

static void open_file(void) {
    OK(MPI_File_open(pair, file_name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
}
static void open_long_file(void) {
    open_file();
    OK(MPI_File_set_size(file, 1 << 16));
}
static void close_file(void) {
    OK(MPI_File_close(&file));
}
static void set_size(void) {
    OK(MPI_File_set_size(file, 4096));
}
static void preallocate(void) {
    OK(MPI_File_preallocate(file, 4096));
}
static void set_view(void) {
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
}
static void sync_file(void) {
    OK(MPI_File_sync(file));
}
static void set_atomicity(void) {
    OK(MPI_File_set_atomicity(file, 1));
}
static void seek_shared(void) {
    OK(MPI_File_seek_shared(file, 64, MPI_SEEK_SET));
}
static void set_info_of_file(void) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "1048576"));
    OK(MPI_File_set_info(file, info));
    OK(MPI_Info_free(&info));
}
/* `call`(file, room, 64 integers, …) of the file and status. */
#define ACCESS(name)                                                     \
    static void access_##name(void) {                                    \
        OK(MPI_File_##name(file, room, 64, MPI_INT, MPI_STATUS_IGNORE)); \
    }
#define ACCESS_AT(name)                                                            \
    static void access_##name(void) {                                              \
        OK(MPI_File_##name(file, 256 * me, room, 64, MPI_INT, MPI_STATUS_IGNORE)); \
    }
#define SPLIT(name, ...)                                                  \
    static void begin_##name(void) {                                      \
        OK(MPI_File_##name##_begin(file, __VA_ARGS__ room, 64, MPI_INT)); \
    }                                                                     \
    static void end_##name(void) {                                        \
        OK(MPI_File_##name##_end(file, room, MPI_STATUS_IGNORE));         \
    }                                                                     \
    static void open_and_begin_##name(void) {                             \
        open_long_file();                                                 \
        begin_##name();                                                   \
    }                                                                     \
    static void end_##name##_and_close(void) {                            \
        end_##name();                                                     \
        close_file();                                                     \
    }
#define NONBLOCKING(name, ...)                                              \
    static void access_##name(void) {                                       \
        OK(MPI_File_##name(file, __VA_ARGS__ room, 64, MPI_INT, &request)); \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                          \
    }
ACCESS(write_all)
ACCESS(read_all)
ACCESS(write_ordered)
ACCESS(read_ordered)
ACCESS_AT(write_at_all)
ACCESS_AT(read_at_all)
SPLIT(write_all)
SPLIT(read_all)
SPLIT(write_ordered)
SPLIT(read_ordered)
#define HERE 256 * me,
SPLIT(write_at_all, HERE)
SPLIT(read_at_all, HERE)
NONBLOCKING(iwrite_all)
NONBLOCKING(iread_all)
NONBLOCKING(iwrite_at_all, HERE)
NONBLOCKING(iread_at_all, HERE)

/* ---- Partitioned operations ---- */

#if defined(HAVE_ISENDRECV) /* the same MPIs */
#define HAVE_PARTITIONED 1
static void make_partitioned(void) {
    if (me == 0)
        OK(MPI_Precv_init(room, 2, 4, MPI_INT, 1, 5, pair, MPI_INFO_NULL, &request));
    else
        OK(MPI_Psend_init(room, 2, 4, MPI_INT, 0, 5, pair, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
}
static void poll_arrived(void) {
    for (int flag = 0; !flag;) OK(MPI_Parrived(request, 1, &flag));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
static void wait_for_partitions(void) {
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
static void make_ready(void) {
    OK(MPI_Pready(0, request));
    OK(MPI_Pready(1, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
static void free_partitioned(void) {
    OK(MPI_Request_free(&request));
}
#endif

/* ---- Communicators ---- */

static void duplicate_pair(void) {
    OK(MPI_Comm_dup(pair, &dup_of_pair));
}
static void disconnect(void) {
    OK(MPI_Comm_disconnect(&dup_of_pair));
}
static void free_duplicate(void) {
    OK(MPI_Comm_free(&dup_of_pair));
}
static void free_made(void) {
    OK(MPI_Comm_free(&made));
}
static void set_info_of_comm(void) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_set_info(dup_of_pair, info));
    OK(MPI_Info_free(&info));
}
static void cart_create(void) {
    int dims[] = {2}, periods[] = {1};
    OK(MPI_Cart_create(pair, 1, dims, periods, 0, &made));
}
static void graph_create(void) {
    int index[] = {1, 2}, edges[] = {1, 0};
    OK(MPI_Graph_create(pair, 2, index, edges, 0, &made));
}
static void dist_graph_create(void) {
    int degree = 1, peer = 1 - me;
    OK(MPI_Dist_graph_create(pair, 1, &me, &degree, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made));
}
static void dist_graph_create_adjacent(void) {
    int peer = 1 - me;
    OK(MPI_Dist_graph_create_adjacent(pair, 1, &peer, MPI_UNWEIGHTED, 1, &peer, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                      0, &made));
}
static void intercomm_create(void) {
    OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, pair, 1 - me, 7, &made));
}
static void make_intercomm(void) {
    OK(MPI_Intercomm_create(MPI_COMM_SELF, 0, pair, 1 - me, 7, &dup_of_pair));
}
static void intercomm_merge(void) {
    OK(MPI_Intercomm_merge(dup_of_pair, me, &made));
}
static void free_both(void) {
    free_duplicate();
    free_made();
}
static void split_type(void) {
    OK(MPI_Comm_split_type(pair, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
}
static void comm_create(void) {
    MPI_Group group;
    OK(MPI_Comm_group(pair, &group));
    OK(MPI_Comm_create(pair, group, &made));
    OK(MPI_Group_free(&group));
}

#if defined(HAVE_ISENDRECV)
#define HAVE_SESSIONS 1
static MPI_Session session;
static MPI_Group of_session;
static void make_session(void) {
    MPI_Group whole, everyone, both;
    int indices[2], own[2] = {0, 1};
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &whole));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &everyone));
    OK(MPI_Comm_group(pair, &both));
    OK(MPI_Group_translate_ranks(both, 2, own, everyone, indices));
    OK(MPI_Group_incl(whole, 2, indices, &of_session));
    OK(MPI_Group_free(&both));
    OK(MPI_Group_free(&everyone));
    OK(MPI_Group_free(&whole));
}
static void free_session(void) {
    OK(MPI_Group_free(&of_session));
    OK(MPI_Session_finalize(&session));
}
static void create_from_group(void) {
    OK(MPI_Comm_create_from_group(of_session, "pair", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
}
static void free_made_and_session(void) {
    free_made();
    free_session();
}
static void make_session_only(void) {
    make_session();
    OK(MPI_Group_free(&of_session));
}
static void finalize_session(void) {
    OK(MPI_Session_finalize(&session));
}
#endif

static void comm_dup(void) {
    OK(MPI_Comm_dup(pair, &made));
}
static void comm_dup_with_info(void) {
    OK(MPI_Comm_dup_with_info(pair, MPI_INFO_NULL, &made));
}
static void comm_split(void) {
    OK(MPI_Comm_split(pair, 0, me, &made));
}
static void comm_create_group(void) {
    MPI_Group group;
    OK(MPI_Comm_group(pair, &group));
    OK(MPI_Comm_create_group(pair, group, 3, &made));
    OK(MPI_Group_free(&group));
}
static void make_ring(void) {
    int dims[] = {2}, periods[] = {1};
    OK(MPI_Cart_create(pair, 1, dims, periods, 0, &dup_of_pair));
}
static void cart_sub(void) {
    int remain[] = {1};
    OK(MPI_Cart_sub(dup_of_pair, remain, &made));
}

/* ---- Collectives, in which the waiter (rank 0) needs something of the helper (rank 1) ---- */

static int answer[64], counts[] = {4, 4}, places[] = {0, 4}, byte_places[] = {0, 16};
static MPI_Datatype types[2];
static MPI_Aint addresses[] = {0, 16};

#define COLLECTIVE(name, ...)             \
    static void collective_##name(void) { \
        types[0] = types[1] = MPI_INT;    \
        OK(MPI_##name(__VA_ARGS__));      \
    }
COLLECTIVE(Barrier, pair)
COLLECTIVE(Bcast, room, 4, MPI_INT, 1, pair)
COLLECTIVE(Reduce, room, answer, 4, MPI_INT, MPI_SUM, 0, pair)
COLLECTIVE(Allreduce, room, answer, 4, MPI_INT, MPI_SUM, pair)
COLLECTIVE(Gather, room, 4, MPI_INT, answer, 4, MPI_INT, 0, pair)
COLLECTIVE(Gatherv, room, 4, MPI_INT, answer, counts, places, MPI_INT, 0, pair)
COLLECTIVE(Scatter, room, 4, MPI_INT, answer, 4, MPI_INT, 1, pair)
COLLECTIVE(Scatterv, room, counts, places, MPI_INT, answer, 4, MPI_INT, 1, pair)
COLLECTIVE(Allgather, room, 4, MPI_INT, answer, 4, MPI_INT, pair)
COLLECTIVE(Allgatherv, room, 4, MPI_INT, answer, counts, places, MPI_INT, pair)
COLLECTIVE(Alltoall, room, 4, MPI_INT, answer, 4, MPI_INT, pair)
COLLECTIVE(Alltoallv, room, counts, places, MPI_INT, answer, counts, places, MPI_INT, pair)
COLLECTIVE(Alltoallw, room, counts, byte_places, types, answer, counts, byte_places, types, pair)
COLLECTIVE(Reduce_scatter, room, answer, counts, MPI_INT, MPI_SUM, pair)
COLLECTIVE(Reduce_scatter_block, room, answer, 4, MPI_INT, MPI_SUM, pair)
COLLECTIVE(Neighbor_allgather, room, 4, MPI_INT, answer, 4, MPI_INT, dup_of_pair)
COLLECTIVE(Neighbor_allgatherv, room, 4, MPI_INT, answer, counts, places, MPI_INT, dup_of_pair)
COLLECTIVE(Neighbor_alltoall, room, 4, MPI_INT, answer, 4, MPI_INT, dup_of_pair)
COLLECTIVE(Neighbor_alltoallv, room, counts, places, MPI_INT, answer, counts, places, MPI_INT, dup_of_pair)
COLLECTIVE(Neighbor_alltoallw, room, counts, addresses, types, answer, counts, addresses, types, dup_of_pair)

/* ---- Buffered sends inside the node: what is in the buffer leaves when the helper receives it ---- */

static void send_buffered(MPI_Comm comm) {
    static char content[BUFFERED];
    if (me == 0) OK(MPI_Bsend(content, BUFFERED, MPI_BYTE, 1, 6, comm));
}
static void receive_buffered(void) {
    static char content[BUFFERED];
    OK(MPI_Recv(content, BUFFERED, MPI_BYTE, 0, 6, dup_of_pair, MPI_STATUS_IGNORE));
}
static void attach_for_process(void) {
    duplicate_pair();
    OK(MPI_Buffer_attach(attached = memory(2 * BUFFERED), 2 * BUFFERED));
    send_buffered(dup_of_pair);
}
static void detach_of_process(void) {
    void* address;
    int bytes;
    OK(MPI_Buffer_detach(&address, &bytes));
}
static void detach_if_helper(void) {
    if (me == 1) detach_of_process();
    free(attached);
    free_duplicate();
}
#ifdef HAVE_COMM_BUFFERS
static void attach_for_comm(void) {
    duplicate_pair();
    OK(MPI_Comm_attach_buffer(dup_of_pair, attached = memory(2 * BUFFERED), 2 * BUFFERED));
    send_buffered(dup_of_pair);
}
static void flush_of_comm(void) {
    OK(MPI_Comm_flush_buffer(dup_of_pair));
}
static void detach_of_comm(void) {
    void* address;
    int bytes;
    OK(MPI_Comm_detach_buffer(dup_of_pair, &address, &bytes));
}
static void end_of_comm(void) {
    detach_of_comm();
    free(attached);
    free_duplicate();
}
static void end_of_detached_comm(void) {
    if (me == 1) detach_of_comm();
    free(attached);
    free_duplicate();
}
static void attach_for_session(void) {
    make_session();
    OK(MPI_Comm_create_from_group(of_session, "buffer", MPI_INFO_NULL, MPI_ERRORS_RETURN, &dup_of_pair));
    OK(MPI_Session_attach_buffer(session, attached = memory(2 * BUFFERED), 2 * BUFFERED));
    send_buffered(dup_of_pair);
}
static void flush_of_session(void) {
    OK(MPI_Session_flush_buffer(session));
}
static void detach_of_session(void) {
    void* address;
    int bytes;
    OK(MPI_Session_detach_buffer(session, &address, &bytes));
}
static void end_of_session(void) {
    detach_of_session();
    free(attached);
    free_duplicate();
    free_session();
}
static void end_of_detached_session(void) {
    if (me == 1) detach_of_session();
    free(attached);
    free_duplicate();
    free_session();
}
#endif

static void nothing(void) {}

/* ---- The cases ---- */

typedef void (*Part)(void);
/* prepare, clean_up: both ranks; wait: the waiter; release: the helper. */
typedef struct {
    const char* name;
    Part prepare, wait, release, clean_up;
} Case;

#define TOGETHER(name, prepare, both, clean_up) \
    { #name, prepare, both, both, clean_up }

static const Case cases[] = {
    {"Win_wait", make_window, expose_and_wait, start_put_complete, free_window},
    {"Win_test", make_window, expose_and_test, start_put_complete, free_window},
    {"Win_start", make_window, start_put_complete, expose_and_wait, free_window},
    {"Win_complete", make_window, poll_complete, set_and_expose, free_window},
    {"Win_lock", hold_exclusive, lock_exclusive, let_go, free_window},
    {"Win_lock.shared_for_exclusive", hold_exclusive, lock_shared, let_go, free_window},
    {"Win_lock.exclusive_for_shared", hold_shared, lock_exclusive, let_go, free_window},
    {"Win_lock.exclusive_for_all", hold_all, lock_exclusive, let_all_go, free_window},
    {"Win_lock_all", hold_exclusive, lock_and_unlock_all, let_go, free_window},
    {"Win_flush", all_lock_all, poll_flush, set_cell, unlock_all_and_free},
    {"Win_flush_local", all_lock_all, poll_flush_local, set_cell, unlock_all_and_free},
    {"Win_flush_all", all_lock_all, poll_flush_all, set_cell, unlock_all_and_free},
    {"Win_flush_local_all", all_lock_all, poll_flush_local_all, set_cell, unlock_all_and_free},
    {"Win_unlock", make_window, poll_unlock, lock_and_set_cell, free_window},
    {"Win_unlock_all", make_window, poll_unlock_all, lock_and_set_cell, free_window},
    TOGETHER(Win_fence, make_window, fence, free_window),
    TOGETHER(Win_free, make_window, only_free_window, free_group_of_other),
    TOGETHER(Win_set_info, make_window, set_info_of_window, free_window),
    TOGETHER(Win_create, nothing, window_create, only_free_window),
    TOGETHER(Win_allocate, nothing, window_allocate, only_free_window),
    TOGETHER(Win_allocate_shared, nothing, window_allocate_shared, only_free_window),
    TOGETHER(Win_create_dynamic, nothing, window_create_dynamic, only_free_window),
    TOGETHER(File_open, nothing, open_file, close_file),
    TOGETHER(File_close, open_file, close_file, nothing),
    TOGETHER(File_set_size, open_file, set_size, close_file),
    TOGETHER(File_preallocate, open_file, preallocate, close_file),
    TOGETHER(File_set_view, open_file, set_view, close_file),
    TOGETHER(File_sync, open_file, sync_file, close_file),
    TOGETHER(File_set_atomicity, open_file, set_atomicity, close_file),
    TOGETHER(File_seek_shared, open_file, seek_shared, close_file),
    TOGETHER(File_set_info, open_file, set_info_of_file, close_file),
    TOGETHER(File_write_all, open_long_file, access_write_all, close_file),
    TOGETHER(File_read_all, open_long_file, access_read_all, close_file),
    TOGETHER(File_write_at_all, open_long_file, access_write_at_all, close_file),
    TOGETHER(File_read_at_all, open_long_file, access_read_at_all, close_file),
    TOGETHER(File_write_ordered, open_long_file, access_write_ordered, close_file),
    TOGETHER(File_read_ordered, open_long_file, access_read_ordered, close_file),
    TOGETHER(File_iwrite_all, open_long_file, access_iwrite_all, close_file),
    TOGETHER(File_iread_all, open_long_file, access_iread_all, close_file),
    TOGETHER(File_iwrite_at_all, open_long_file, access_iwrite_at_all, close_file),
    TOGETHER(File_iread_at_all, open_long_file, access_iread_at_all, close_file),
    TOGETHER(File_write_all_begin, open_long_file, begin_write_all, end_write_all_and_close),
    TOGETHER(File_write_all_end, open_and_begin_write_all, end_write_all, close_file),
    TOGETHER(File_read_all_begin, open_long_file, begin_read_all, end_read_all_and_close),
    TOGETHER(File_read_all_end, open_and_begin_read_all, end_read_all, close_file),
    TOGETHER(File_write_at_all_begin, open_long_file, begin_write_at_all, end_write_at_all_and_close),
    TOGETHER(File_write_at_all_end, open_and_begin_write_at_all, end_write_at_all, close_file),
    TOGETHER(File_read_at_all_begin, open_long_file, begin_read_at_all, end_read_at_all_and_close),
    TOGETHER(File_read_at_all_end, open_and_begin_read_at_all, end_read_at_all, close_file),
    TOGETHER(File_write_ordered_begin, open_long_file, begin_write_ordered, end_write_ordered_and_close),
    TOGETHER(File_write_ordered_end, open_and_begin_write_ordered, end_write_ordered, close_file),
    TOGETHER(File_read_ordered_begin, open_long_file, begin_read_ordered, end_read_ordered_and_close),
    TOGETHER(File_read_ordered_end, open_and_begin_read_ordered, end_read_ordered, close_file),
    TOGETHER(Comm_disconnect, duplicate_pair, disconnect, nothing),
    TOGETHER(Comm_free, duplicate_pair, free_duplicate, nothing),
    TOGETHER(Comm_set_info, duplicate_pair, set_info_of_comm, free_duplicate),
    TOGETHER(Comm_create, nothing, comm_create, free_made),
    TOGETHER(Comm_split_type, nothing, split_type, free_made),
    TOGETHER(Cart_create, nothing, cart_create, free_made),
    TOGETHER(Graph_create, nothing, graph_create, free_made),
    TOGETHER(Dist_graph_create, nothing, dist_graph_create, free_made),
    TOGETHER(Dist_graph_create_adjacent, nothing, dist_graph_create_adjacent, free_made),
    TOGETHER(Intercomm_create, nothing, intercomm_create, free_made),
    TOGETHER(Intercomm_merge, make_intercomm, intercomm_merge, free_both),
    TOGETHER(Comm_dup, nothing, comm_dup, free_made),
    TOGETHER(Comm_dup_with_info, nothing, comm_dup_with_info, free_made),
    TOGETHER(Comm_split, nothing, comm_split, free_made),
    TOGETHER(Comm_create_group, nothing, comm_create_group, free_made),
    TOGETHER(Cart_sub, make_ring, cart_sub, free_both),
    TOGETHER(Barrier, nothing, collective_Barrier, nothing),
    TOGETHER(Bcast, nothing, collective_Bcast, nothing),
    TOGETHER(Reduce, nothing, collective_Reduce, nothing),
    TOGETHER(Allreduce, nothing, collective_Allreduce, nothing),
    TOGETHER(Gather, nothing, collective_Gather, nothing),
    TOGETHER(Gatherv, nothing, collective_Gatherv, nothing),
    TOGETHER(Scatter, nothing, collective_Scatter, nothing),
    TOGETHER(Scatterv, nothing, collective_Scatterv, nothing),
    TOGETHER(Allgather, nothing, collective_Allgather, nothing),
    TOGETHER(Allgatherv, nothing, collective_Allgatherv, nothing),
    TOGETHER(Alltoall, nothing, collective_Alltoall, nothing),
    TOGETHER(Alltoallv, nothing, collective_Alltoallv, nothing),
    TOGETHER(Alltoallw, nothing, collective_Alltoallw, nothing),
    TOGETHER(Reduce_scatter, nothing, collective_Reduce_scatter, nothing),
    TOGETHER(Reduce_scatter_block, nothing, collective_Reduce_scatter_block, nothing),
    TOGETHER(Neighbor_allgather, make_ring, collective_Neighbor_allgather, free_duplicate),
    TOGETHER(Neighbor_allgatherv, make_ring, collective_Neighbor_allgatherv, free_duplicate),
    TOGETHER(Neighbor_alltoall, make_ring, collective_Neighbor_alltoall, free_duplicate),
    TOGETHER(Neighbor_alltoallv, make_ring, collective_Neighbor_alltoallv, free_duplicate),
    TOGETHER(Neighbor_alltoallw, make_ring, collective_Neighbor_alltoallw, free_duplicate),
    {"Buffer_detach", attach_for_process, detach_of_process, receive_buffered, detach_if_helper},
#ifdef HAVE_PARTITIONED
    {"Parrived", make_partitioned, poll_arrived, make_ready, free_partitioned},
    {"Wait.partitioned", make_partitioned, wait_for_partitions, make_ready, free_partitioned},
#endif
#ifdef HAVE_SESSIONS
    TOGETHER(Comm_create_from_group, make_session, create_from_group, free_made_and_session),
    TOGETHER(Session_finalize, make_session_only, finalize_session, nothing),
#endif
#ifdef HAVE_COMM_BUFFERS
    {"Comm_flush_buffer", attach_for_comm, flush_of_comm, receive_buffered, end_of_comm},
    {"Comm_detach_buffer", attach_for_comm, detach_of_comm, receive_buffered, end_of_detached_comm},
    {"Session_flush_buffer", attach_for_session, flush_of_session, receive_buffered, end_of_session},
    {"Session_detach_buffer", attach_for_session, detach_of_session, receive_buffered,
     end_of_detached_session},
#endif
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Running them ---- */

static const char* running = "";

static void hung(int signal) {
    char line[256];
    (void)signal;
    int n = snprintf(line, sizeof line, "hung %s on rank %d\n", running, rank);
    if (n > 0 && write(STDOUT_FILENO, line, (size_t)n) < 0) _exit(4);
    _exit(3);
}

/* World ranks of the three, from who shares the memory of the first and who does not. */
static void find_three(int* waiter, int* helper, int* far) {
    MPI_Comm node;
    int lowest = rank;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Bcast(&lowest, 1, MPI_INT, 0, node));
    OK(MPI_Comm_free(&node));
    int* lowest_of = memory((size_t)size * sizeof *lowest_of);
    OK(MPI_Allgather(&lowest, 1, MPI_INT, lowest_of, 1, MPI_INT, MPI_COMM_WORLD));
    *waiter = 0, *helper = *far = -1;
    for (int i = size - 1; i > 0; --i) *(lowest_of[i] == 0 ? helper : far) = i;
    CHECK(*helper > 0 && *far > 0, "two ranks on the first node and one on another are needed");
    free(lowest_of);
}

static void run_case(const Case* one, int waiter, int helper, int far, unsigned char* buffer) {
    const int is_of_pair = rank == waiter || rank == helper;
    int receipt = 0;
    MPI_Request sending;
    if (is_of_pair) one->prepare();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == waiter) {
        buffer[0] = 1, buffer[BIG - 1] = 2;
        OK(MPI_Isend(buffer, BIG, MPI_BYTE, far, TAG, MPI_COMM_WORLD, &sending));
        one->wait();
        OK(MPI_Wait(&sending, MPI_STATUS_IGNORE));
    } else if (rank == far) {
        buffer[0] = buffer[BIG - 1] = 0;
        OK(MPI_Recv(buffer, BIG, MPI_BYTE, waiter, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(buffer[0] == 1 && buffer[BIG - 1] == 2, "the message has another content");
        OK(MPI_Send(&receipt, 1, MPI_INT, helper, RECEIPT, MPI_COMM_WORLD));
    } else if (rank == helper) {
        OK(MPI_Recv(&receipt, 1, MPI_INT, far, RECEIPT, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        one->release();
    }
    if (is_of_pair) one->clean_up();
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static int wanted(const char* name, int named, char** names) {
    for (int i = 0; i < named; ++i)
        if (strcmp(names[i], name) == 0) return 1;
    return named == 0;
}

static void run_all(unsigned limit, int named, char** names) {
    int waiter, helper, far;
    find_three(&waiter, &helper, &far);
    const int of_pair = rank == waiter || rank == helper;
    OK(MPI_Comm_split(MPI_COMM_WORLD, of_pair ? 0 : MPI_UNDEFINED, rank, &pair));
    if (of_pair) OK(MPI_Comm_rank(pair, &me));
    unsigned char* buffer = memory(BIG);
    memset(buffer, 0, BIG);
    signal(SIGALRM, hung);
    for (int i = 0; i < CASES; ++i) {
        if (!wanted(cases[i].name, named, names)) continue;
        running = cases[i].name;
        alarm(limit);
        run_case(&cases[i], waiter, helper, far, buffer);
        if (rank == 0) printf("ok %s\n", running), fflush(stdout);
    }
    alarm(limit);
    running = "(end)";
    if (rank == waiter) unlink(file_name);
    if (of_pair) OK(MPI_Comm_free(&pair));
    free(buffer);
}

int main(int argc, char** argv) {
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < CASES; ++i) printf("%s\n", cases[i].name);
        return 0;
    }
    if (argc < 3) return 2;
    const int single = argc > 3 && strcmp(argv[3], "--single") == 0;
    if (single)
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads_given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    snprintf(file_name, sizeof file_name, "%s/file", argv[1]);
    run_all((unsigned)atoi(argv[2]), argc - 3 - single, argv + 3 + single);
    MPI_Barrier(MPI_COMM_WORLD);
    sleep_seconds(0.02); /* MPICH 4.0 may hang in MPI_Finalize otherwise */
    if (rank == 0) printf("end\n"), fflush(stdout);
    MPI_Finalize();
    return 0;
}
