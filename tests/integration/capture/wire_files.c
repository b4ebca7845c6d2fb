/* Writes and reads a file with collective, shared and ordered access:  wire_files NAMES PLAINTEXT
 *
 * NAMES is a file with two lines: the name of the file to write, and a hint. (The launcher sends arguments over the
 * network.) PLAINTEXT gets all data; rank 0 prints "view OFFSET…", where the runs of its view are, so that a capture
 * can be searched for all of it (test_wire_files.py). */
#include "../mpi/harness.h"

enum { RUNS = 64, RUN = 4096, SHARED = 20000 };

static MPI_Aint offsets[RUNS];

/* Runs of a view, at places that only its description tells: after each run of rank 0's comes one of rank 1's,
 * and so on. */
static MPI_Datatype runs_of(int owner) {
    MPI_Datatype type;
    MPI_Aint place = 0;
    for (int i = 0; i < RUNS; ++i) {
        place += 1000003 + 8191 * i * i % 65521;
        offsets[i] = place + owner * (MPI_Aint)RUN;
        place += size * (MPI_Aint)RUN;
    }
    OK(MPI_Type_create_hindexed_block(RUNS, RUN, offsets, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

int main(int argc, char** argv) {
    MPI_File file;
    MPI_Info hints;
    MPI_Offset bytes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 2, "wire_files NAMES PLAINTEXT");
    char name[4096] = "", hint[256] = "";
    FILE* names = fopen(argv[1], "r");
    CHECK(names && fscanf(names, "%4095s %255s", name, hint) == 2, "cannot read %s", argv[1]);
    fclose(names);
    const int each = RUNS * RUN + 2 * SHARED, all = size * each;
    unsigned char *plaintext = memory((size_t)all), *mine = plaintext + (size_t)rank * (size_t)each;
    unsigned char* in = memory(RUNS * RUN);
    fill(plaintext, (size_t)all, 20261124);
    OK(MPI_Info_create(&hints));
    OK(MPI_Info_set(hints, "romio_cb_write", "enable"));
    OK(MPI_Info_set(hints, "romio_cb_read", "enable"));
    OK(MPI_Info_set(hints, "mpisec_marker", hint));
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file));
    MPI_Datatype runs = runs_of(rank);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, runs, "native", hints));
    OK(MPI_File_write_all(file, mine, RUNS * RUN, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all(file, in, RUNS * RUN, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(in, mine, RUNS * RUN) == 0, "something else was read than was written");
    OK(MPI_File_get_size(file, &bytes));
    OK(MPI_File_set_view(file, bytes, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_write_shared(file, mine + RUNS * RUN, SHARED, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_write_ordered(file, mine + RUNS * RUN + SHARED, SHARED, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    if (rank == 0) {
        FILE* out = fopen(argv[2], "wb");
        CHECK(out && fwrite(plaintext, 1, (size_t)all, out) == (size_t)all && fclose(out) == 0,
              "cannot write %s", argv[2]);
        printf("view");
        for (int i = 0; i < RUNS; ++i) printf(" %lld", (long long)offsets[i]);
        printf("\n");
    }
    OK(MPI_Type_free(&runs));
    OK(MPI_Info_free(&hints));
    free(plaintext);
    free(in);
    MPI_Finalize();
    return 0;
}
