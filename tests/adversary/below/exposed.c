/* Memory in windows while the first and the last rank send each other messages, for an attacker who asks the MPI library for that memory.
 *
 *     exposed across|inside|dynamic     a window of all ranks, of the ranks of a node, one that memory is attached to
 *
 * BELOW_CLEAR is the text that the memory is full of. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 4096, MESSAGES = 10, LENGTH = 1000 };

static void fill(char* memory) {
    const char* text = getenv("BELOW_CLEAR");
    const size_t length = strlen(text);
    for (size_t i = 0; i < BYTES; ++i) memory[i] = text[i % length];
}

static MPI_Win expose(const char* how, MPI_Comm node, char** memory) {
    MPI_Win win;
    if (strcmp(how, "inside") == 0) {
        MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, node, memory, &win);
        return win;
    }
    MPI_Alloc_mem(BYTES, MPI_INFO_NULL, memory);
    if (strcmp(how, "across") == 0) {
        MPI_Win_create(*memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, *memory, BYTES);
    }
    return win;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    char *memory, message[LENGTH] = "";
    MPI_Win win = expose(argv[1], node, &memory);
    fill(memory);
    MPI_Barrier(MPI_COMM_WORLD);
    int* section = dlsym(RTLD_DEFAULT, "below_section");
    if (section) *section = 1;
    const int other = rank == 0 ? size - 1 : 0;
    for (int i = 0; i < MESSAGES && (rank == 0 || rank == size - 1); ++i) {
        if (rank == 0) MPI_Send(message, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD);
        MPI_Recv(message, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != 0) MPI_Send(message, LENGTH, MPI_CHAR, other, 0, MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
    printf("rank %d end\n", rank);
    MPI_Finalize();
    return 0;
}
