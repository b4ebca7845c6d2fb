/* Error handlers, and mistakes that MPI libraries report: with which class, and whose handler is called. */
#include "program.h"

static MPI_Errhandler handlers[MOST_HANDLERS];
static int made[MOST_HANDLERS];

static void handle(int number, const int* code) {
    say_called("handler %d: class %d", number, class_of(*code));
}
static void first_handler(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    handle(1, code);
}
static void second_handler(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    handle(2, code);
}

/* Number 0 is MPI_ERRORS_RETURN. */
static int set_handler(const struct step* step, int id) {
    struct comm* comm = comm_of(step, "comm");
    if (!comm || (id && !made[id])) return 0;
    OK(MPI_Comm_set_errhandler, (comm->comm, id ? handlers[id] : MPI_ERRORS_RETURN));
    return 1;
}

static int get_handler(const struct step* step) {
    struct comm* comm = comm_of(step, "comm");
    if (!comm) return 0;
    MPI_Errhandler found;
    OK(MPI_Comm_get_errhandler, (comm->comm, &found));
    int number = found == MPI_ERRORS_RETURN ? 0 : found == MPI_ERRORS_ARE_FATAL ? -1 : -2;
    for (int i = 1; i < MOST_HANDLERS; ++i)
        if (made[i] && handlers[i] == found) number = i;
    say(" handler=%d", number);
    OK(MPI_Errhandler_free, (&found));
    return 1;
}

/* ---- mistakes; each returns the code of the call, and leaves nothing under way */
typedef int mistake(const struct comm* comm);
#define MISTAKE(name, procedure, arguments)                                  \
    static int name(const struct comm* comm) {                               \
        int data[4] = {0}, other[4] = {0};                                   \
        MPI_Request request = MPI_REQUEST_NULL;                              \
        MPI_Comm made_comm = MPI_COMM_NULL;                                  \
        (void)comm, (void)data, (void)other, (void)request, (void)made_comm; \
        return CALL(procedure, arguments);                                   \
    }
MISTAKE(send_rank, MPI_Send, (data, 1, MPI_INT, comm->remote + 2, 1, comm->comm))
MISTAKE(send_negative_rank, MPI_Send, (data, 1, MPI_INT, -77, 1, comm->comm))
MISTAKE(send_tag, MPI_Send, (data, 1, MPI_INT, 0, -77, comm->comm))
MISTAKE(send_count, MPI_Send, (data, -1, MPI_INT, 0, 1, comm->comm))
MISTAKE(send_type, MPI_Send, (data, 1, MPI_DATATYPE_NULL, 0, 1, comm->comm))
MISTAKE(send_comm, MPI_Send, (data, 1, MPI_INT, 0, 1, MPI_COMM_NULL))
MISTAKE(ssend_rank, MPI_Ssend, (data, 1, MPI_INT, comm->remote, 1, comm->comm))
MISTAKE(isend_rank, MPI_Isend, (data, 1, MPI_INT, comm->remote, 1, comm->comm, &request))
MISTAKE(isend_type, MPI_Isend, (data, 1, MPI_DATATYPE_NULL, 0, 1, comm->comm, &request))
MISTAKE(irecv_rank, MPI_Irecv, (data, 1, MPI_INT, comm->remote, 1, comm->comm, &request))
MISTAKE(irecv_tag, MPI_Irecv, (data, 1, MPI_INT, 0, -77, comm->comm, &request))
MISTAKE(irecv_type, MPI_Irecv, (data, 1, MPI_DATATYPE_NULL, 0, 1, comm->comm, &request))
MISTAKE(recv_init_type, MPI_Recv_init, (data, 1, MPI_DATATYPE_NULL, 0, 1, comm->comm, &request))
MISTAKE(recv_rank, MPI_Recv, (data, 1, MPI_INT, comm->remote + 5, 1, comm->comm, MPI_STATUS_IGNORE))
MISTAKE(recv_count, MPI_Recv, (data, -3, MPI_INT, 0, 1, comm->comm, MPI_STATUS_IGNORE))
MISTAKE(send_init_rank, MPI_Send_init, (data, 1, MPI_INT, comm->remote + 2, 1, comm->comm, &request))
MISTAKE(recv_init_tag, MPI_Recv_init, (data, 1, MPI_INT, 0, -77, comm->comm, &request))
MISTAKE(probe_rank, MPI_Probe, (comm->remote + 3, 1, comm->comm, MPI_STATUS_IGNORE))
MISTAKE(iprobe_tag, MPI_Iprobe, (0, -77, comm->comm, data, MPI_STATUS_IGNORE))
MISTAKE(sendrecv_rank, MPI_Sendrecv,
        (data, 1, MPI_INT, comm->remote + 1, 1, other, 1, MPI_INT, MPI_PROC_NULL, 1, comm->comm,
         MPI_STATUS_IGNORE))
MISTAKE(bcast_root, MPI_Bcast, (data, 1, MPI_INT, comm->remote + 2, comm->comm))
MISTAKE(bcast_count, MPI_Bcast, (data, -1, MPI_INT, 0, comm->comm))
MISTAKE(bcast_comm, MPI_Bcast, (data, 1, MPI_INT, 0, MPI_COMM_NULL))
MISTAKE(reduce_root, MPI_Reduce, (data, other, 1, MPI_INT, MPI_SUM, -55, comm->comm))
MISTAKE(allreduce_op, MPI_Allreduce, (data, other, 1, MPI_INT, MPI_OP_NULL, comm->comm))
MISTAKE(allgather_type, MPI_Allgather, (data, 1, MPI_DATATYPE_NULL, other, 1, MPI_INT, comm->comm))
MISTAKE(ibcast_root, MPI_Ibcast, (data, 1, MPI_INT, comm->remote + 2, comm->comm, &request))
MISTAKE(barrier_comm, MPI_Barrier, (MPI_COMM_NULL))
MISTAKE(dup_comm, MPI_Comm_dup, (MPI_COMM_NULL, &made_comm))
MISTAKE(free_comm, MPI_Comm_free, (&made_comm))
MISTAKE(cart_too_large, MPI_Cart_create, (comm->comm, 1, (int[]){comm->size + 1}, data, 0, &made_comm))
MISTAKE(cart_negative, MPI_Cart_create, (comm->comm, 1, (int[]){-2}, data, 0, &made_comm))
MISTAKE(wait_comm_size, MPI_Comm_size, (MPI_COMM_NULL, data))
MISTAKE(start_null, MPI_Start, (&request))
MISTAKE(free_request, MPI_Request_free, (&request))
MISTAKE(cancel_null, MPI_Cancel, (&request))

static const struct {
    const char* name;
    mistake* make;
} mistakes[] = {
#define NAMED(name) \
    { #name, name }
    NAMED(send_rank),      NAMED(send_negative_rank), NAMED(send_tag),       NAMED(send_count),
    NAMED(send_type),      NAMED(send_comm),          NAMED(ssend_rank),     NAMED(isend_rank),
    NAMED(isend_type),     NAMED(irecv_rank),         NAMED(irecv_tag),      NAMED(recv_rank),
    NAMED(recv_count),     NAMED(send_init_rank),     NAMED(recv_init_tag),  NAMED(probe_rank),
    NAMED(iprobe_tag),     NAMED(sendrecv_rank),      NAMED(bcast_root),     NAMED(bcast_count),
    NAMED(bcast_comm),     NAMED(reduce_root),        NAMED(allreduce_op),   NAMED(irecv_type),
    NAMED(allgather_type), NAMED(ibcast_root),        NAMED(barrier_comm),   NAMED(dup_comm),
    NAMED(free_comm),      NAMED(recv_init_type),     NAMED(cart_too_large), NAMED(cart_negative),
    NAMED(wait_comm_size), NAMED(start_null),         NAMED(free_request),   NAMED(cancel_null),
};

static int make_mistake(const struct step* step) {
    struct comm* comm = comm_of(step, "comm");
    if (!comm) return 0;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i)
        if (is(step, "kind", mistakes[i].name)) {
            int class = class_of(mistakes[i].make(comm));
            /* What MPICH returns after a handler of the program's is not the error. */
            if (!ON_MPICH || !callbacks()) say(" class=%d", class);
            return 1;
        }
    give_up("line %d: no mistake is called so", step->number);
}

int error_step(const struct step* step) {
    int id = (int)(value(step, "handler", 0) % MOST_HANDLERS), done = 1;
    if (verb_is(step, "handler")) {
        done = id > 0 && !made[id];
        if (done)
            made[id] =
                !OK(MPI_Comm_create_errhandler, (id % 2 ? first_handler : second_handler, &handlers[id]));
    } else if (verb_is(step, "set_handler")) {
        done = set_handler(step, id);
    } else if (verb_is(step, "get_handler")) {
        done = get_handler(step);
    } else if (verb_is(step, "free_handler")) { /* communicators that have it keep it */
        done = made[id];
        if (done) OK(MPI_Errhandler_free, (&handlers[id]));
        made[id] = 0;
    } else if (verb_is(step, "call_handler")) {
        struct comm* comm = comm_of(step, "comm");
        done = comm != NULL;
        if (done)
            say(" returned %d",
                CALL(MPI_Comm_call_errhandler, (comm->comm, MPI_ERR_TOPOLOGY)) == MPI_SUCCESS);
    } else if (verb_is(step, "mistake")) {
        done = make_mistake(step);
    } else {
        return 0;
    }
    if (!done) say(" skipped");
    return 1;
}

void free_handlers(void) {
    OK(MPI_Comm_set_errhandler, (MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler, (MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < MOST_HANDLERS; ++i)
        if (made[i]) OK(MPI_Errhandler_free, (&handlers[i]));
    memset(made, 0, sizeof made);
}
