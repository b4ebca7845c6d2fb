/* What envelopes.c is held against:  victim_envelopes MODE, four ranks on two nodes
 *
 *   recv     rank 0 receives from rank 2, blocking, when rank 3 has sent as much with the same tag
 *   irecv    the same without blocking
 *   late     a reduction for which rank 3 comes late, so that the others look for notices
 *
 * Rank 0 prints "error STRING", or "got TEXT from RANK". */
#define _GNU_SOURCE
#include "armed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 5, BYTES = 8 };

static void receive(int blocking) {
    char text[BYTES] = "", said[MPI_MAX_ERROR_STRING];
    int frames, segments, length;
    MPI_Status status;
    MPI_Request request;
    arm();
    int code = MPI_SUCCESS;
    if (blocking) {
        code = MPI_Recv(text, BYTES, MPI_CHAR, 2, TAG, MPI_COMM_WORLD, &status);
    } else {
        MPI_Irecv(text, BYTES, MPI_CHAR, 2, TAG, MPI_COMM_WORLD, &request);
        code = MPI_Wait(&request, &status);
    }
    disarm(&frames, &segments);
    if (code != MPI_SUCCESS) {
        MPI_Error_string(code, said, &length);
        printf("error %s\n", said);
    } else {
        printf("got %s from %d\n", text, status.MPI_SOURCE);
    }
    fflush(stdout);
    sleep(1);                     /* the launcher passes it on */
    MPI_Abort(MPI_COMM_WORLD, 0); /* the other message stays where it is */
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    if (strcmp(argv[1], "late") == 0) {
        int one = 1, sum = 0;
        if (rank == 3) sleep(4);
        const int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) printf("%s, the sum is %d\n", code == MPI_SUCCESS ? "fine" : "error", sum);
    } else {
        char text[BYTES];
        snprintf(text, sizeof text, "text %d", rank);
        if (rank >= 2) MPI_Send(text, BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) receive(strcmp(argv[1], "recv") == 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
