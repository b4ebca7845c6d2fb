/* Programs that are wrong on purpose, so that the sanitizer speaks up inside MPIsec, which does what they ask
 * for:
 *
 *     misuse statuses     MPI_Waitall writes two statuses where there is room for one
 *     misuse status       a thread writes the status that MPI_Recv writes in another
 *     misuse leak         memory of the program itself is lost
 *
 * All are right but for that: without a sanitizer they may well pass. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 100 };

static void too_few_statuses(int peer) {
    static char out[2][BYTES], in[2][BYTES];
    MPI_Request sent[2], received[2];
    MPI_Status* statuses = malloc(sizeof *statuses);
    for (int i = 0; i < 2; ++i) {
        MPI_Irecv(in[i], BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &received[i]);
        MPI_Isend(out[i], BYTES, MPI_BYTE, peer, i, MPI_COMM_WORLD, &sent[i]);
    }
    MPI_Waitall(2, received, statuses);
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    free(statuses);
}

static MPI_Status shared;

static void* write_status(void* nothing) {
    shared.MPI_TAG = 0;
    return nothing;
}

static void one_status_for_two(int peer) {
    char out[BYTES] = "", in[BYTES];
    pthread_t thread;
    pthread_create(&thread, NULL, write_status, NULL);
    MPI_Request sent;
    MPI_Isend(out, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &sent);
    MPI_Recv(in, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &shared);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    pthread_join(thread, NULL);
}

static void lose_memory(int peer) {
    char* out = calloc(1, BYTES);
    char in[BYTES];
    MPI_Sendrecv(out, BYTES, MPI_BYTE, peer, 0, in, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    memset(&out, 0, sizeof out);
}

int main(int argc, char** argv) {
    int given, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(argv[1], "statuses") == 0)
        too_few_statuses(1 - rank);
    else if (strcmp(argv[1], "leak") == 0)
        lose_memory(1 - rank);
    else
        one_status_for_two(1 - rank);
    MPI_Finalize();
    return 0;
}
