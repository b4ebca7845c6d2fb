/* What an attacked program sees of partitioned messages:  victim_partitioned SCENARIO SENDS RECEIVES SIZE WAY[,WAY…]
 *
 * Rank 0 sends a message of SENDS partitions of SIZE bytes, rank 1 receives it in RECEIVES partitions, with
 * MPI_ERRORS_RETURN, in four starts, and a second message with another tag beside it. For each start rank 1 writes one
 * line: "as sent" or "error CODE-STRING", then "buffer clean" or "buffer FOREIGN". Clean: every byte is what was sent in
 * this start, what was there before, or zero. The lines go to the file that VICTIM_SAYS names: launchers may drop what a
 * rank prints just before it ends the job.
 *
 * SCENARIO   first   the adversary acts in the first start      one     in the second
 *            again   in the second and the third                lost    in the second; rank 1 ends the job at an error
 *            ready   in the first, on rank 1, which says that it is ready
 *            sessions   as ready; each WAY in a session of its own, without MPI_Init, and only in the first of them
 * WAY        wait: with MPI_Wait     arrived: with MPI_Parrived, until it says so or fails
 */
#define _GNU_SOURCE
#include "armed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFILL = 0xC3, TAG = 5, STARTS = 4, MESSAGES = 2 };
static int rank, sends, receives, size, n;
static const char *way, *scenario;
static FILE* says;
static MPI_Comm everyone;
static int sessions; /* so far */

static unsigned char content(int message, int start,
                             int i) { /* never zero nor PREFILL, nor one bit away from these */
    unsigned x = (unsigned)i * 2654435761u + (unsigned)start * 40503u + (unsigned)message * 77777u;
    return (unsigned char)(16 + (x >> 13) % 128);
}

static void disarm_and_report(void) {
    int frames = 0, segments = 0;
    if (disarm(&frames, &segments))
        printf("adversary: rank %d sent %d frames and %d segments\n", rank, frames, segments);
}

static int attacked(int start) {
    if (strcmp(scenario, "first") == 0) return start == 0;
    if (strcmp(scenario, "ready") == 0 || sessions) return 0;
    return start == 1 || (start == 2 && strcmp(scenario, "again") == 0);
}

static void sender(void) {
    unsigned char* out[MESSAGES];
    MPI_Request requests[MESSAGES];
    for (int m = 0; m < MESSAGES; ++m) {
        out[m] = malloc((size_t)n + 1);
        MPI_Psend_init(out[m], sends, size, MPI_BYTE, 1, TAG + m, everyone, MPI_INFO_NULL, &requests[m]);
    }
    for (int start = 0; start < STARTS; ++start) {
        for (int m = 0; m < MESSAGES; ++m)
            for (int i = 0; i < n; ++i) out[m][i] = content(m, start, i);
        if (attacked(start)) arm();
        MPI_Startall(MESSAGES, requests);
        for (int m = 0; m < MESSAGES; ++m)
            for (int i = 0; i < sends; ++i) MPI_Pready(sends - 1 - i, requests[m]);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        if (attacked(start)) disarm_and_report();
    }
    for (int m = 0; m < MESSAGES; ++m) MPI_Request_free(&requests[m]);
}

/* Waits for the message and says what became of it. */
static int receive(int message, int start, unsigned char* in, MPI_Request* request) {
    int code = MPI_SUCCESS, right = 0, foreign = 0, length, wrong = 0;
    if (strcmp(way, "arrived") == 0) {
        int each = n / receives;
        for (int i = 0; i < receives && code == MPI_SUCCESS; ++i) {
            for (int flag = 0; !flag && code == MPI_SUCCESS;) code = MPI_Parrived(*request, i, &flag);
            for (int k = i * each; k < (i + 1) * each && code == MPI_SUCCESS; ++k)
                wrong += in[k] != content(message, start, k);
        }
    }
    int end = MPI_Wait(request, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS) code = end;
    for (int i = 0; i < n + 64; ++i) {
        int as_sent = i < n && in[i] == content(message, start, i);
        right += as_sent;
        foreign += !as_sent && in[i] != PREFILL && (in[i] != 0 || i >= n);
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
    for (char* c = text; *c; ++c)
        if (*c == '\n') *c = ' ';
    fprintf(says, "rank %d %s message %d start %d: %s%s; %d of %d bytes as sent; buffer %s\n", rank, way,
            message, start, code == MPI_SUCCESS ? (right == n ? "as sent" : "OTHER CONTENT") : "error ", text,
            right, n, foreign || wrong ? "FOREIGN" : "clean");
    fflush(says);
    return code;
}

static void receiver(void) {
    unsigned char* in[MESSAGES];
    MPI_Request requests[MESSAGES];
    for (int m = 0; m < MESSAGES; ++m) {
        in[m] = malloc((size_t)n + 64);
        MPI_Precv_init(in[m], receives, n / receives, MPI_BYTE, 0, TAG + m, everyone, MPI_INFO_NULL,
                       &requests[m]);
    }
    for (int start = 0; start < STARTS; ++start) {
        for (int m = 0; m < MESSAGES; ++m) memset(in[m], PREFILL, (size_t)n + 64);
        const int says_ready = start == 0 && (strcmp(scenario, "ready") == 0 || sessions == 1);
        if (says_ready) arm();
        MPI_Startall(MESSAGES, requests);
        if (says_ready) disarm_and_report();
        for (int m = 0; m < MESSAGES; ++m)
            if (receive(m, start, in[m], &requests[m]) != MPI_SUCCESS && strcmp(scenario, "lost") == 0)
                MPI_Abort(MPI_COMM_WORLD, 7);
    }
    for (int m = 0; m < MESSAGES; ++m) MPI_Request_free(&requests[m]);
}

static void play(MPI_Comm comm) {
    everyone = comm;
    MPI_Comm_rank(everyone, &rank);
    MPI_Comm_set_errhandler(everyone, MPI_ERRORS_RETURN);
    if (rank == 0) sender();
    if (rank == 1) receiver();
    MPI_Barrier(everyone);
}

static void play_in_a_session(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    ++sessions;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "partitioned", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    play(comm);
    MPI_Comm_disconnect(&comm);
    MPI_Session_finalize(&session);
}

int main(int argc, char** argv) {
    if (argc != 6 || !(says = fopen(getenv("VICTIM_SAYS"), "a"))) return 2;
    scenario = argv[1], sends = atoi(argv[2]), receives = atoi(argv[3]), size = atoi(argv[4]),
    n = sends * size;
    const int in_sessions = strcmp(scenario, "sessions") == 0;
    if (!in_sessions) MPI_Init(&argc, &argv);
    for (char* next = strtok(argv[5], ","); next; next = strtok(NULL, ",")) {
        way = next;
        if (in_sessions)
            play_in_a_session();
        else
            play(MPI_COMM_WORLD);
    }
    if (!in_sessions) MPI_Finalize();
    return 0;
}
