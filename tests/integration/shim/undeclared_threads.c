/* Threads that call MPI, of a program that asks for MPI_THREAD_SINGLE, FUNNELED or SERIALIZED (argument 1: 0,
 * 1 or 2). Argument 2: "together": two threads of rank 0 send at the same time; "turns": three threads, one
 * after the other under a lock; "collectives": two threads take part in collectives of two communicators at
 * the same time. Argument 3: 1 when the thread that called MPI_Init is one of them. Rank 1 receives. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 300, BYTES = 1000 };
static int rank, together, collectives;
static MPI_Comm comms[2];
static pthread_barrier_t both;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void* use_mpi(void* argument) {
    int me = *(int*)argument;
    char* data = calloc(BYTES, 1);
    if (together && (rank == 0 || collectives)) pthread_barrier_wait(&both);
    for (int i = 0; i < MESSAGES; ++i) {
        if (!together) pthread_mutex_lock(&turn);
        if (collectives)
            MPI_Bcast(data, BYTES, MPI_BYTE, 0, comms[me]);
        else if (rank == 0)
            MPI_Send(data, BYTES, MPI_BYTE, 1, me, MPI_COMM_WORLD);
        else
            MPI_Recv(data, BYTES, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!together) pthread_mutex_unlock(&turn);
    }
    free(data);
    return NULL;
}

int main(int argc, char** argv) {
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED};
    static int numbers[] = {0, 1, 2};
    int provided, main_too = atoi(argv[3]), threads = 0;
    pthread_t ids[3];
    MPI_Init_thread(&argc, &argv, levels[atoi(argv[1])], &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    collectives = !strcmp(argv[2], "collectives");
    together = collectives || !strcmp(argv[2], "together");
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    if (rank == 0 || collectives) {
        for (int i = main_too; i < (together ? 2 : 3); ++i, ++threads)
            pthread_create(&ids[threads], NULL, use_mpi, &numbers[i]);
        if (main_too) use_mpi(&numbers[0]);
        for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
    } else {
        for (int i = 0; i < (together ? 2 : 3); ++i) use_mpi(&numbers[i]);
    }
    MPI_Finalize();
    printf("done %d\n", rank);
    return 0;
}
