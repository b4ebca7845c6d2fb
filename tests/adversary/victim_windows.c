/* One-sided communication under attack:  victim_windows WHO KIND SIZE WAY
 *
 * Rank 0 does OPERATIONS operations of KIND (put, get, accumulate) on rank 1's window under a lock, then flushes
 * and unlocks. The adversary (adversary.c) is armed on WHO: on rank 0, whose requests are its segments 1, 2, …, or on
 * rank 1, whose answers are. WAY is apart: a probe after each operation sends its request, and rank 0 is armed until
 * the flush; or together: short requests travel in one message with the flush, under attack as well; fence: apart,
 * between fences; kept: the same, and the window is not freed; freed: apart, MPI_Rget, and the requests are completed when the window is
 * freed: "requests failed" or "fine"; wait: MPI_Rget of different contents, and what the first of them has
 * when its wait ends; or reuse: apart, and the memory of gets is used for something else after the error. Each rank prints "rank R: ERROR STRING", or "fine", of
 * what its calls on the window gave, and "rank R: memory as it was", "as meant" or "FOREIGN". */
#define _GNU_SOURCE
#include "armed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPERATIONS = 4 };
static int rank, size_of_each, armed_rank;
static unsigned char* cells; /* of both ranks: the window's, or what rank 0 sends and fetches */
static MPI_Win window;
static int worst = MPI_SUCCESS;

static void note(int code) {
    if (code != MPI_SUCCESS && worst == MPI_SUCCESS) worst = code;
}

static unsigned char value_of(int operation) {
    return (unsigned char)(0x41 + operation);
}

static void operate(const char* kind, int operation, unsigned char* mine) {
    MPI_Aint place = (MPI_Aint)operation * size_of_each;
    memset(mine, value_of(operation), (size_t)size_of_each);
    if (strcmp(kind, "get") == 0)
        note(MPI_Get(cells + place, size_of_each, MPI_BYTE, 1, place, size_of_each, MPI_BYTE, window));
    else if (strcmp(kind, "put") == 0)
        note(MPI_Put(mine, size_of_each, MPI_BYTE, 1, place, size_of_each, MPI_BYTE, window));
    else
        note(MPI_Accumulate(mine, size_of_each, MPI_BYTE, 1, place, size_of_each, MPI_BYTE, MPI_BOR, window));
}

/* After the error the memory of gets is the program's again. */
static const char* reuse(void) {
    const size_t bytes = (size_t)OPERATIONS * (size_t)size_of_each;
    memset(cells, 0x77, bytes);
    for (int turn = 0; turn < 200; ++turn) {
        int found;
        MPI_Iprobe(1, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    for (size_t i = 0; i < bytes; ++i)
        if (cells[i] != 0x77) return "WRITTEN AFTER THE END";
    return "left alone";
}

/* Gets of one length: the first of them ends with its own data, or not at all. */
static void wait_for_first(unsigned char* mine) {
    MPI_Request requests[OPERATIONS];
    for (int operation = 0; operation < OPERATIONS; ++operation) {
        const MPI_Aint place = (MPI_Aint)operation * size_of_each;
        note(MPI_Rget(mine + place, size_of_each, MPI_BYTE, 1, place, size_of_each, MPI_BYTE, window,
                      &requests[operation]));
    }
    note(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    printf("first %s\n", mine[0] == value_of(0) ? "right" : "ANOTHER'S");
    fflush(stdout);
    note(MPI_Waitall(OPERATIONS - 1, requests + 1, MPI_STATUSES_IGNORE));
}

/* Every byte is as it was or as meant: nothing else is anywhere. */
static const char* judge(unsigned char was, int values_of_operations) {
    size_t meant = 0, bytes = (size_t)OPERATIONS * (size_t)size_of_each;
    for (size_t i = 0; i < bytes; ++i) {
        unsigned char expected = values_of_operations ? value_of((int)(i / (size_t)size_of_each)) : 0x33;
        if (cells[i] == expected)
            ++meant;
        else if (cells[i] != was)
            return "FOREIGN";
    }
    return meant == 0 ? "as it was" : meant == bytes ? "as meant" : "in part as meant";
}

static void say(const char* what) {
    char text[MPI_MAX_ERROR_STRING + 1] = "fine";
    int length;
    if (worst != MPI_SUCCESS) MPI_Error_string(worst, text, &length);
    printf("rank %d: %s\nrank %d: memory %s\n", rank, text, rank, what);
    fflush(stdout);
}

/* Starts the gets; completes them when the window is gone. */
static MPI_Request fetching[OPERATIONS];
static void complete_late(void) {
    MPI_Status statuses[OPERATIONS];
    const int code = MPI_Waitall(OPERATIONS, fetching, statuses);
    printf("requests %s\n", code == MPI_SUCCESS ? "fine" : "failed");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 5) MPI_Abort(MPI_COMM_WORLD, 3);
    armed_rank = atoi(argv[1]);
    const char* kind = argv[2];
    const int together = strcmp(argv[4], "together") == 0;
    size_of_each = atoi(argv[3]);
    const size_t bytes = (size_t)OPERATIONS * (size_t)size_of_each;
    unsigned char* mine = malloc(bytes);
    const int gets = strcmp(kind, "get") == 0;
    const unsigned char before = rank == 1 && gets ? 0x33 : 0;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    memset(cells, before, bytes);
    const int waits = strcmp(argv[4], "wait") == 0;
    for (size_t i = 0; waits && i < bytes; ++i) cells[i] = value_of((int)(i / (size_t)size_of_each));
    watch(MPI_COMM_WORLD); /* messages of the program's own are no segments */
    MPI_Barrier(MPI_COMM_WORLD);
    int frames, segments;
    const int freed = strcmp(argv[4], "freed") == 0;
    const int kept = strcmp(argv[4], "kept") == 0, fence = kept || strcmp(argv[4], "fence") == 0;
    if (fence) {
        note(MPI_Win_fence(0, window));
        if (rank == armed_rank) arm();
        for (int operation = 0; rank == 0 && operation < OPERATIONS; ++operation) {
            operate(kind, operation, mine + (size_t)operation * (size_t)size_of_each);
            int found;
            MPI_Iprobe(1, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        }
        if (rank == armed_rank) disarm(&frames, &segments);
        note(MPI_Win_fence(0, window));
    } else if (rank == 0) {
        note(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window));
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (armed_rank == 0) arm();
        if (waits) wait_for_first(mine);
        for (int operation = 0; freed && operation < OPERATIONS; ++operation)
            note(MPI_Rget(mine + (size_t)operation * (size_t)size_of_each, size_of_each, MPI_BYTE, 1,
                          (MPI_Aint)operation * size_of_each, size_of_each, MPI_BYTE, window,
                          &fetching[operation]));
        for (int operation = 0; !waits && !freed && operation < OPERATIONS; ++operation) {
            operate(kind, operation, mine + (size_t)operation * (size_t)size_of_each);
            int found;
            if (!together) MPI_Iprobe(1, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        }
        if (!together) disarm(&frames, &segments);
        const int flushed = MPI_Win_flush(1, window);
        note(flushed);
        printf("flush %s\n", flushed == MPI_SUCCESS ? "fine" : "failed");
        if (together) disarm(&frames, &segments);
        note(MPI_Win_unlock(1, window));
        MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the lock is granted */
        if (armed_rank == 1) arm(); /* what it sends from here on are answers */
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        disarm(&frames, &segments);
        note(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window));
        note(MPI_Win_unlock(1, window));
    }
    if (rank == 0 && strcmp(argv[4], "reuse") == 0)
        say(reuse());
    else
        say(rank == 1 ? judge(before, !gets) : gets ? judge(before, 0) : "not looked at");
    MPI_Barrier(MPI_COMM_WORLD);
    if (!kept) note(MPI_Win_free(&window));
    if (freed && rank == 0) complete_late();
    MPI_Finalize();
    return 0;
}
