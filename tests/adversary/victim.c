/* What an attacked program sees:  victim SCENARIO SIZE WAY[,WAY…]
 *
 * Goes through the scenario once for each WAY to receive. Rank 0 sends, rank 1 (and 2) receives, with
 * MPI_ERRORS_RETURN. For each receive a rank prints one line: "receive K: as sent" or "receive K: error
 * CODE-STRING", then "buffer clean" or "buffer FOREIGN". Clean: every byte is what was sent, what was there
 * before, or zero: no unauthenticated byte got through (S2).
 *
 * SCENARIO   one     a message, then one that nobody touches
 *            two     two messages of one tag          tags    of two tags
 *            any-tags of two tags, received with MPI_ANY_TAG
 *            comms   on two communicators              peers   to ranks 1 and 2
 *            later   three messages, a replay, a fourth
 *            reflect rank 0 to rank 1; then rank 1 to rank 0, which the adversary replaces by the former
 *            window  24 messages of one tag, all under way at once
 *            overtaken   three messages of one tag, all received at once, the last waited for first
 *            pending two messages of one tag, received from MPI_ANY_SOURCE beside one of rank 2, whose receive, posted
 *                    first, is waited for last
 *            slow-window, slow-tags   like window and tags, all but the first received a second later
 *            audit   nothing but MPI_Finalize (the message audit), which the adversary sees of rank 1
 *            unread  the same, of rank 0, after a message to rank 2 that is never received
 *            lost    rank 1 gives up waiting after a second and finalizes
 * WAY        recv, any, wait, waitall, test, probe, mprobe, imrecv, persistent, sendrecv: how rank 1 receives
 */
#define _GNU_SOURCE
#include "armed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PREFILL = 0xC3, TAG = 5, WINDOW = 24 };
static int rank, size, n;
static const char *way = "recv", *scenario;
static MPI_Comm other;

static unsigned char content(int message, int i) { /* never zero nor PREFILL, nor one bit away from these */
    unsigned x = (unsigned)i * 2654435761u + (unsigned)message * 40503u;
    return (unsigned char)(16 + (x >> 13) % 128);
}

static void disarm_and_report(void) {
    int frames = 0, segments = 0;
    if (disarm(&frames, &segments))
        printf("adversary: rank %d sent %d frames and %d segments\n", rank, frames, segments);
}

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static unsigned char* filled(int message) { /* left to the end of the program */
    unsigned char* out = malloc((size_t)n + 1);
    for (int i = 0; i < n; ++i) out[i] = content(message, i);
    return out;
}

static void start_send(int message, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    MPI_Isend(filled(message), n, MPI_BYTE, to, tag, comm, request);
}
static void send(int message, int to, int tag, MPI_Comm comm) {
    MPI_Request request;
    start_send(message, to, tag, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int receive_into(unsigned char* in, int from, int tag, MPI_Comm comm) {
    MPI_Request request;
    MPI_Message handle;
    MPI_Status status;
    int flag = 0, code;
    if (strcmp(way, "wait") == 0 || strcmp(way, "waitall") == 0 || strcmp(way, "test") == 0) {
        if ((code = MPI_Irecv(in, n, MPI_BYTE, from, tag, comm, &request)) != MPI_SUCCESS) return code;
        if (way[0] == 't') {
            while (!flag && (code = MPI_Test(&request, &flag, &status)) == MPI_SUCCESS) continue;
            return code;
        }
        if (strcmp(way, "wait") == 0) return MPI_Wait(&request, &status);
        code = MPI_Waitall(1, &request, &status);
        return code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code;
    }
    if (strcmp(way, "persistent") == 0) {
        MPI_Recv_init(in, n, MPI_BYTE, from, tag, comm, &request);
        MPI_Start(&request);
        code = MPI_Wait(&request, &status);
        MPI_Request_free(&request);
        return code;
    }
    if (strcmp(way, "probe") == 0) {
        if ((code = MPI_Probe(from, tag, comm, &status)) != MPI_SUCCESS) return code;
        tag = status.MPI_TAG;
    }
    if (strcmp(way, "mprobe") == 0 || strcmp(way, "imrecv") == 0) {
        if ((code = MPI_Mprobe(from, tag, comm, &handle, &status)) != MPI_SUCCESS) return code;
        if (way[0] == 'm') return MPI_Mrecv(in, n, MPI_BYTE, &handle, &status);
        if ((code = MPI_Imrecv(in, n, MPI_BYTE, &handle, &request)) != MPI_SUCCESS) return code;
        return MPI_Wait(&request, &status);
    }
    if (strcmp(way, "sendrecv") == 0)
        return MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, in, n, MPI_BYTE, from, tag, comm, &status);
    return MPI_Recv(in, n, MPI_BYTE, strcmp(way, "any") == 0 ? MPI_ANY_SOURCE : from, tag, comm, &status);
}

static unsigned char* prefilled(void) {
    unsigned char* in = malloc((size_t)n + 64);
    memset(in, PREFILL, (size_t)n + 64);
    return in;
}

static void tell(int number, int message, int code, const unsigned char* in) {
    int right = 0, foreign = 0, length;
    for (int i = 0; i < n + 64; ++i) {
        int as_sent = i < n && in[i] == content(message, i);
        right += as_sent;
        if ((strcmp(scenario, "two") == 0 || strcmp(scenario, "any-tags") == 0) && i < n)
            as_sent |= in[i] == content(3 - message, i); /* authentic, too early */
        foreign += !as_sent && in[i] != PREFILL && (in[i] != 0 || i >= n);
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    for (char* c = text; *c; ++c)
        if (*c == '\n') *c = ' ';
    int class = MPI_SUCCESS, of_class = 0;
    char class_text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class);
    if (code != MPI_SUCCESS) MPI_Error_string(class, class_text, &of_class);
    printf("rank %d %s receive %d: %s%s; class \"%s\"; %d of %d bytes as sent; buffer %s\n", rank, way,
           number, code == MPI_SUCCESS ? (right == n ? "as sent" : "OTHER CONTENT") : "error ", text,
           class_text, right, n, foreign ? "FOREIGN" : "clean");
    fflush(stdout);
}

static void receive(int number, int message, int from, int tag, MPI_Comm comm) {
    unsigned char* in = prefilled();
    tell(number, message, receive_into(in, from, tag, comm), in);
}

static void receive_last_first(void) {
    MPI_Request requests[3];
    unsigned char* in[3];
    for (int i = 0; i < 3; ++i)
        MPI_Irecv(in[i] = prefilled(), n, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
    for (int i = 2; i >= 0; --i) tell(i + 1, i + 1, MPI_Wait(&requests[i], MPI_STATUS_IGNORE), in[i]);
}

static void receive_beside_another(void) {
    MPI_Request requests[2];
    unsigned char* in[2];
    for (int i = 0; i < 2; ++i)
        MPI_Irecv(in[i] = prefilled(), n, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[i]);
    send(9, 2, TAG + 5, MPI_COMM_WORLD); /* both are posted */
    tell(2, 2, MPI_Wait(&requests[1], MPI_STATUS_IGNORE), in[1]);
    tell(1, 3, MPI_Wait(&requests[0], MPI_STATUS_IGNORE), in[0]);
}

static void stand_beside(void) {
    receive(9, 9, 1, TAG + 5, MPI_COMM_WORLD);
    MPI_Ssend(filled(3), n, MPI_BYTE, 1, TAG,
              MPI_COMM_WORLD); /* the first receive has it before rank 0 sends */
    send(9, 0, TAG + 5, MPI_COMM_WORLD);
}

static void send_window(void) {
    MPI_Request requests[WINDOW];
    arm();
    for (int i = 0; i < WINDOW; ++i) start_send(1, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    disarm_and_report();
    send(9, 1, TAG + 4, MPI_COMM_WORLD);
}

static void sender(void) {
    if (strstr(scenario, "window")) {
        send_window();
        return;
    }
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int pending = strcmp(scenario, "pending") == 0;
    if (pending) receive(9, 9, 2, TAG + 5, MPI_COMM_WORLD);
    int two = strcmp(scenario, "two") == 0, tags = strstr(scenario, "tags") != NULL;
    int comms = strcmp(scenario, "comms") == 0, peers = strcmp(scenario, "peers") == 0;
    arm();
    start_send(1, 1, TAG, MPI_COMM_WORLD, &requests[0]);
    if (two || tags || comms || peers || pending)
        start_send(2, peers ? 2 : 1, tags ? TAG + 1 : TAG, comms ? other : MPI_COMM_WORLD, &requests[1]);
    if (strcmp(scenario, "later") == 0) send(2, 1, TAG, MPI_COMM_WORLD), send(3, 1, TAG, MPI_COMM_WORLD);
    if (strcmp(scenario, "overtaken") == 0)
        for (int i = 1; i < 3; ++i) start_send(i + 1, 1, TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    disarm_and_report();
    if (strcmp(scenario, "lost") != 0) send(9, 1, TAG + 4, MPI_COMM_WORLD);
}

/* Time for what the ranks tell each other about a message that was refused. */
static void linger(void) {
    int flag;
    for (int i = 0; i < 1000; ++i) {
        MPI_Iprobe(0, TAG + 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        sleep_ms(1);
    }
}

static void receiver(void) {
    if (strcmp(scenario, "lost") == 0) {
        MPI_Request request;
        int nothing, flag = 0;
        MPI_Irecv(&nothing, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        sleep_ms(300);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (!flag) MPI_Cancel(&request), MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    if (strcmp(scenario, "overtaken") == 0) {
        receive_last_first();
        receive(9, 9, 0, TAG + 4, MPI_COMM_WORLD);
        return;
    }
    if (strcmp(scenario, "pending") == 0) {
        receive_beside_another();
        receive(9, 9, 0, TAG + 4, MPI_COMM_WORLD);
        return;
    }
    int peers = strcmp(scenario, "peers") == 0, any_tags = strcmp(scenario, "any-tags") == 0;
    receive(1, peers && rank == 2 ? 2 : 1, 0, any_tags ? MPI_ANY_TAG : TAG, MPI_COMM_WORLD);
    if (strncmp(scenario, "slow", 4) == 0) linger();
    if (strstr(scenario, "window")) {
        const char* attack = getenv("MPISEC_LAB_ATTACK");
        int one_more = attack && strncmp(attack, "extra", 5) == 0;
        for (int i = 1; i < WINDOW + one_more; ++i) receive(1, 1, 0, TAG, MPI_COMM_WORLD);
    }
    if (strcmp(scenario, "two") == 0) receive(2, 2, 0, TAG, MPI_COMM_WORLD);
    if (strstr(scenario, "tags")) receive(2, 2, 0, any_tags ? MPI_ANY_TAG : TAG + 1, MPI_COMM_WORLD);
    if (strcmp(scenario, "comms") == 0) receive(2, 2, 0, TAG, other);
    if (strcmp(scenario, "later") == 0) {
        receive(2, 2, 0, TAG, MPI_COMM_WORLD);
        receive(3, 3, 0, TAG, MPI_COMM_WORLD);
        receive(4, 4, 0, TAG, MPI_COMM_WORLD); /* the replay */
    }
    if (strcmp(scenario, "one") == 0 &&
        strcmp(getenv("MPISEC_LAB_ATTACK") ? getenv("MPISEC_LAB_ATTACK") : "", "replay-now") == 0)
        receive(2, 2, 0, TAG, MPI_COMM_WORLD);
    if (rank == 1) receive(9, 9, 0, TAG + 4, MPI_COMM_WORLD);
}

/* Rank 0's message is recorded on its way to rank 1 (rank 0 has record:…); then rank 1's is replaced by it
 * (rank 1 has inject:…). */
static void reflect(void) {
    if (rank == 0) {
        arm();
        send(1, 1, TAG, MPI_COMM_WORLD);
        disarm_and_report();
    } else if (rank == 1) {
        receive(1, 1, 0, TAG, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        arm();
        send(2, 0, TAG, MPI_COMM_WORLD);
        disarm_and_report();
    } else if (rank == 0) {
        receive(2, 2, 1, TAG, MPI_COMM_WORLD);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4) return 2;
    scenario = argv[1], n = atoi(argv[2]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    watch(MPI_COMM_WORLD), watch(other);
    for (way = strtok(argv[3], ","); way; way = strtok(NULL, ",")) {
        if (strcmp(scenario, "audit") == 0 || strcmp(scenario, "unread") == 0) continue;
        if (strcmp(scenario, "reflect") == 0)
            reflect();
        else if (rank == 0)
            sender();
        else if (rank == 1 || strcmp(scenario, "peers") == 0)
            receiver(); /* other ranks only stand by */
        else if (strcmp(scenario, "pending") == 0)
            stand_beside();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&other);
    if (strcmp(scenario, "audit") == 0 && rank == 1) arm();
    if (strcmp(scenario, "unread") == 0 && rank == 0) {
        send(3, 2, TAG, MPI_COMM_WORLD);
        arm();
    }
    printf("rank %d: done\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
