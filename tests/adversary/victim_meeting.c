/* victim_meeting CALL ARMED: the ranks meet, or for "split" tell each other their colours, or for "intercomm" their groups, before MPI makes a
 * communicator, and what rank ARMED (1) sends meanwhile is attacked; or they make a window ("create", "allocate", "dynamic") or open a file (its path), and free or close it
 * again. Every rank says how its calls ended ("failed": the one that frees), and rank ARMED how many messages it sent in the first; the job
 * ends without MPI_Finalize, because MPI may have made what no rank has. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "armed.h"

static int rank;

/* Between the first and the second half of the ranks. */
static int between_halves(MPI_Comm half, int size, MPI_Comm* made) {
    return MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < size / 2 ? size / 2 : 0, 5, made);
}

static const char* make_communicator(const char* call, MPI_Comm half) {
    MPI_Comm made = MPI_COMM_SELF; /* which no failed call leaves there */
    MPI_Group all;
    int code, size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    if (strcmp(call, "split") == 0)
        code = MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made);
    else if (strcmp(call, "group") == 0)
        code = MPI_Comm_create_group(MPI_COMM_WORLD, all, 5, &made);
    else if (strcmp(call, "from_group") == 0)
        code = MPI_Comm_create_from_group(all, "five", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    else if (strcmp(call, "intercomm") == 0)
        code = between_halves(half, size, &made);
    else
        code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return code == MPI_SUCCESS ? "made" : made == MPI_COMM_NULL ? "error" : "OTHER";
}

static int make_window(const char* call, MPI_Win* window) {
    static char cells[64];
    void* allocated;
    if (strcmp(call, "create") == 0)
        return MPI_Win_create(cells, sizeof cells, 1, MPI_INFO_NULL, MPI_COMM_WORLD, window);
    if (strcmp(call, "allocate") == 0)
        return MPI_Win_allocate(sizeof cells, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, window);
    return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, window);
}

static const char* freed_window(MPI_Win* window) {
    MPI_Win_set_errhandler(*window, MPI_ERRORS_RETURN);
    return MPI_Win_free(window) == MPI_SUCCESS ? "made" : "failed";
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int frames, segments;
    const int armed = argc > 2 ? atoi(argv[2]) : 1;
    const char *call = argc > 1 ? argv[1] : "dup", *end = "error";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    leave_node_alone(rank);
    int size;
    MPI_Comm half;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == armed) arm();
    if (call[0] == '/') {
        MPI_File file;
        int code = MPI_File_open(MPI_COMM_WORLD, call, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        if (rank == armed) disarm(&frames, &segments);
        if (code == MPI_SUCCESS) end = MPI_File_close(&file) == MPI_SUCCESS ? "made" : "failed";
    } else if (strstr("split dup group from_group intercomm", call)) {
        end = make_communicator(call, half);
        if (rank == armed) disarm(&frames, &segments);
    } else {
        MPI_Win window;
        const int code = make_window(call, &window);
        if (rank == armed) disarm(&frames, &segments);
        if (code == MPI_SUCCESS) end = freed_window(&window);
    }
    printf("rank %d: %s\n", rank, end);
    if (rank == armed) printf("%d messages\n", segments);
    fflush(stdout);
    sleep(4); /* others may be on their way out of the call */
    _exit(0);
}
