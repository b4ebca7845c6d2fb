/* Access to files under attack:  victim_files WHO SIZE FILE [together | kept]
 *
 * Rank 1 writes RECORDS records of SIZE bytes with the shared pointer, which rank 0 keeps. Meanwhile the adversary
 * (adversary.c) is armed on WHO: on rank 1, whose requests are its segments 1, 2, …, or on rank 0, whose answers
 * are. Or both write every second record, together, such that they exchange them first. Each rank prints "rank R: ERROR STRING", or "fine", of what its calls on the file gave; rank 0 prints
 * "records N" of what is in the file afterwards, or "FOREIGN": bytes that no record has at that place. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "armed.h"

enum { RECORDS = 4 };
static int rank, size_of_each, armed_rank;
static int worst = MPI_SUCCESS;

static void note(int code) {
    if (code != MPI_SUCCESS && worst == MPI_SUCCESS) worst = code;
}

static void stop(void) {
    int frames, segments;
    if (rank == armed_rank) disarm(&frames, &segments);
}

static void write_records(MPI_File file) {
    unsigned char* record = malloc((size_t)size_of_each);
    for (int i = 0; i < RECORDS; ++i) {
        memset(record, 0x41 + i, (size_t)size_of_each);
        note(MPI_File_write_shared(file, record, size_of_each, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    free(record);
}

/* Rank r writes records r and r + 2. */
static void write_together(MPI_File file) {
    unsigned char* records = malloc(2 * (size_t)size_of_each);
    MPI_Datatype second;
    for (int i = 0; i < 2; ++i) memset(records + i * size_of_each, 0x41 + rank + 2 * i, (size_t)size_of_each);
    MPI_Type_vector(2, size_of_each, 2 * size_of_each, MPI_BYTE, &second);
    MPI_Type_commit(&second);
    note(MPI_File_set_view(file, rank * size_of_each, MPI_BYTE, second, "native", MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == armed_rank) arm();
    note(MPI_File_write_all(file, records, 2 * size_of_each, MPI_BYTE, MPI_STATUS_IGNORE));
    stop();
    MPI_Type_free(&second);
    free(records);
}

/* Record i may be at its own place only, and is there whole or not at all. */
static void judge(const char* path) {
    FILE* file = fopen(path, "rb");
    int found = 0, byte;
    for (long place = 0; file && (byte = fgetc(file)) != EOF; ++place) {
        if (place / size_of_each >= RECORDS || byte != 0x41 + place / size_of_each) {
            printf("FOREIGN byte %d at %ld\n", byte, place);
            break;
        }
        found += place % size_of_each == size_of_each - 1;
    }
    if (file) fclose(file);
    printf("records %d\n", found);
}

static void say(void) {
    char text[MPI_MAX_ERROR_STRING + 1] = "fine";
    int length;
    if (worst != MPI_SUCCESS) MPI_Error_string(worst, text, &length);
    printf("rank %d: %s\n", rank, text);
    fflush(stdout);
}

int main(int argc, char** argv) {
    MPI_File file;
    MPI_Offset place;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4) MPI_Abort(MPI_COMM_WORLD, 3);
    armed_rank = atoi(argv[1]);
    size_of_each = atoi(argv[2]);
    if (MPI_File_open(MPI_COMM_WORLD, argv[3], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
        MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 4);
    watch(MPI_COMM_WORLD); /* messages of the program's own are no segments */
    MPI_Barrier(MPI_COMM_WORLD);
    const char* way = argc > 4 ? argv[4] : "";
    const int kept = strcmp(way, "kept") == 0;
    if (kept) {
        if (rank == armed_rank) arm();
        if (rank == 1)
            write_records(file);
        else
            note(MPI_File_sync(file));
        stop();
        if (rank == 0) judge(argv[3]);
    } else if (strcmp(way, "together") == 0) {
        write_together(file);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) judge(argv[3]);
    } else if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == armed_rank) arm();
        write_records(file);
        stop();
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    } else {
        if (rank == armed_rank) arm(); /* what it sends from here on are answers */
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        stop();
        judge(argv[3]);
        note(MPI_File_get_position_shared(file, &place));
    }
    say();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!kept) note(MPI_File_close(&file));
    MPI_Finalize();
    return 0;
}
