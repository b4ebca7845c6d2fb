/* Messages from one byte below 256 KiB, which travel in one part with a fast cipher, to beyond 512 KiB, which do not, in
 * every way of sending, receiving and probing: alone and several at a time; those as long on the wire as the first part
 * of a longer one, too (36 bytes more). Two ranks; each is sender and
 * receiver in turn, and every byte is compared. */
#include "harness.h"

enum { FIRST = 256 * 1024, MOST = 2 * FIRST + 36, WINDOW = 5, TAG = 7 };

static const int lengths[] = {FIRST - 1,     FIRST,     FIRST + 1,     FIRST + 36,
                              2 * FIRST - 1, 2 * FIRST, 2 * FIRST + 1, MOST};

static unsigned char *out, *in;
static int sender, other;

static unsigned char* message_to_send(int number, int length) {
    unsigned char* at = out + (size_t)number * MOST;
    fill(at, (size_t)length, (uint64_t)(number + length));
    return at;
}
static void check(int number, int length, const MPI_Status* status) {
    if (status) CHECK_STATUS(status, other, TAG, length);
    CHECK_FILLED(in + (size_t)number * MOST, (size_t)length, (uint64_t)(number + length));
}

static void standard(int n) {
    MPI_Status status;
    if (sender)
        OK(MPI_Send(message_to_send(0, n), n, MPI_BYTE, other, TAG, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status)),
            check(0, n, &status);
}
static void synchronous_to_a_receive_of_its_length(int n) {
    if (sender)
        OK(MPI_Ssend(message_to_send(0, n), n, MPI_BYTE, other, TAG, MPI_COMM_WORLD));
    else
        OK(MPI_Recv(in, n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), check(0, n, NULL);
}
static void buffered(int n) {
    if (sender) {
        OK(MPI_Bsend(message_to_send(0, n), n, MPI_BYTE, other, TAG, MPI_COMM_WORLD));
        memset(out, 0, (size_t)n);
    } else {
        OK(MPI_Recv(in, MOST, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), check(0, n, NULL);
    }
}
static void several(int n) {
    MPI_Request requests[WINDOW];
    MPI_Status statuses[WINDOW];
    for (int i = 0; i < WINDOW; ++i)
        if (sender)
            OK(MPI_Isend(message_to_send(i, n), n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &requests[i]));
        else
            OK(MPI_Irecv(in + (size_t)i * MOST, MOST, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Waitall(WINDOW, requests, statuses));
    for (int i = 0; !sender && i < WINDOW; ++i) check(i, n, &statuses[i]);
}
static void both_ways(int n) {
    MPI_Status status;
    OK(MPI_Sendrecv(message_to_send(0, n), n, MPI_BYTE, other, TAG, in, MOST, MPI_BYTE, other, TAG,
                    MPI_COMM_WORLD, &status));
    check(0, n, &status);
}
static void probed(int n) {
    MPI_Status status;
    int count;
    if (sender) return standard(n);
    OK(MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == n, "a probe shows %d bytes of %d", count, n);
    OK(MPI_Recv(in, count, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &status));
    check(0, n, &status);
}
static void matched_by_a_probe(int n) {
    MPI_Status status;
    MPI_Message message;
    if (sender) return standard(n);
    OK(MPI_Mprobe(other, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Mrecv(in, MOST, MPI_BYTE, &message, &status));
    check(0, n, &status);
}
static void persistent(int n) {
    MPI_Request request;
    MPI_Status status;
    if (sender)
        OK(MPI_Send_init(message_to_send(0, n), n, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &request));
    else
        OK(MPI_Recv_init(in, MOST, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &request));
    for (int i = 0; i < 2; ++i) {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, &status));
        if (!sender) check(0, n, &status);
    }
    OK(MPI_Request_free(&request));
}
/* Every other byte of the memory. */
static void scattered(int n) {
    MPI_Datatype type;
    OK(MPI_Type_vector(n, 1, 2, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    if (sender) {
        const unsigned char* bytes = message_to_send(0, n);
        for (int i = 0; i < n; ++i) in[2 * i] = bytes[i];
        OK(MPI_Send(in, 1, type, other, TAG, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(out, 1, type, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < n; ++i) in[i] = out[2 * i];
        check(0, n, NULL);
    }
    OK(MPI_Type_free(&type));
}
static void too_long(int n) {
    if (sender) {
        standard(n);
        return standard(n);
    }
    in[n - 1] = 0x77;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const int code = MPI_Recv(in, n - 1, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    CHECK(class_of(code) == MPI_ERR_TRUNCATE && in[n - 1] == 0x77, "%d bytes fit %d", n, n - 1);
    standard(n);
}

int main(int argc, char** argv) {
    static void (*const ways[])(int) = {standard,           synchronous_to_a_receive_of_its_length,
                                        buffered,           several,
                                        both_ways,          probed,
                                        matched_by_a_probe, persistent,
                                        scattered,          too_long};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    out = memory((size_t)WINDOW * MOST), in = memory((size_t)WINDOW * MOST);
    void* room = memory(MOST + MPI_BSEND_OVERHEAD);
    OK(MPI_Buffer_attach(room, MOST + MPI_BSEND_OVERHEAD));
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; ++way)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i)
            for (int turn = 0; turn < 2; ++turn) {
                sender = rank == turn;
                ways[way](lengths[i]);
                OK(MPI_Barrier(MPI_COMM_WORLD));
            }
    OK(MPI_Buffer_detach(&room, &(int){0}));
    free(room), free(out), free(in);
    if (rank == 0) puts("in one part: done");
    MPI_Finalize();
    return 0;
}
