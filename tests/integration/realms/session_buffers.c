/* Buffered sends on communicators of a session take its buffer, and its flush and detaching wait for them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 100000, COUNT = 3, ROOM = COUNT * (BYTES + MPI_BSEND_OVERHEAD) };

static int rank, size;

static void check(int good, const char* what) {
    if (good) return;
    printf("rank %d: %s\n", rank, what);
    fflush(stdout);
    abort();
}

static int class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* Sends to the next rank; what comes from the one before is received after `late`. */
static void pass_on(MPI_Session session, MPI_Comm comm, int late) {
    char* messages = calloc(2, BYTES);
    MPI_Request flushed = MPI_REQUEST_NULL;
    for (int i = 0; i < COUNT; ++i) {
        messages[i] = (char)(rank + i);
        check(MPI_Bsend(messages, BYTES, MPI_BYTE, (rank + 1) % size, i, comm) == 0, "MPI_Bsend");
    }
    if (late) MPI_Session_iflush_buffer(session, &flushed);
    for (int i = 0; i < COUNT; ++i) {
        const int before = (rank + size - 1) % size;
        MPI_Recv(messages + BYTES, BYTES, MPI_BYTE, before, i, comm, MPI_STATUS_IGNORE);
        check(messages[BYTES + i] == (char)(before + i), "another message");
    }
    if (late)
        MPI_Wait(&flushed, MPI_STATUS_IGNORE);
    else
        MPI_Session_flush_buffer(session);
    free(messages);
}

int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, copy;
    void* address;
    int length;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_dup(comm, &copy);
    const int across = (rank + size / 2) % size;

    char* attached = malloc(ROOM);
    check(MPI_Session_attach_buffer(session, attached, ROOM) == 0, "MPI_Session_attach_buffer");
    pass_on(session, comm, 0);
    pass_on(session, copy, 1); /* all of the buffer is free again */
    MPI_Session_detach_buffer(session, &address, &length);
    check(address == attached && length == ROOM, "another buffer came back");
    check(class_of(MPI_Bsend(&length, 1, MPI_INT, across, 9, comm)) == MPI_ERR_BUFFER, "no buffer, no error");

    MPI_Session_attach_buffer(session, MPI_BUFFER_AUTOMATIC, 0);
    pass_on(session, comm, 1);
    MPI_Session_detach_buffer(session, &address, &length);
    check(address == MPI_BUFFER_AUTOMATIC, "it was not automatic");

    MPI_Comm_attach_buffer(comm, attached, ROOM);
    check(class_of(MPI_Comm_attach_buffer(comm, attached, ROOM)) == MPI_ERR_OTHER,
          "a second buffer, no error");
    MPI_Comm_detach_buffer(comm, &address, &length);
    check(address == attached && length == ROOM, "another buffer came back from the communicator");

    printf("rank %d: good\n", rank);
    free(attached);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return 0;
}
