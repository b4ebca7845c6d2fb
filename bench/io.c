/* Collective access of all ranks to one file: microseconds until all of them are back from it (interleaving.h says how
 * plain and sealed take turns; each kind has a file of its own).
 *
 *   --operation write | read                            each rank's part is one piece of the file
 *   --operation write-interleaved | read-interleaved    it is every n-th piece of 4 KiB
 *
 * io [--sizes 67108864] [--operation write] [--blocks N] [--block-us T] [--ordinary 1]
 * The files are in a new directory of this user's alone below BENCH_IO_DIRECTORY, which all nodes must see, else below
 * /tmp: a name that others know could be a link of theirs. Sizes are of the file. One line of JSON per size on rank 0. What is in the file is read at the end and compared. */
#include "interleaving.h"

#include <mpi.h>
#include <unistd.h>

enum { PIECE = 4096 };

static int (*Barrier[KINDS])(MPI_Comm) = {NULL, MPI_Barrier};
static int (*File_open[KINDS])(MPI_Comm, const char*, int, MPI_Info, MPI_File*) = {NULL, MPI_File_open};
static int (*File_close[KINDS])(MPI_File*) = {NULL, MPI_File_close};
static int (*File_set_view[KINDS])(MPI_File, MPI_Offset, MPI_Datatype, MPI_Datatype, const char*,
                                   MPI_Info) = {NULL, MPI_File_set_view};
static int (*File_write_at_all[KINDS])(MPI_File, MPI_Offset, const void*, int, MPI_Datatype, MPI_Status*) = {
    NULL, MPI_File_write_at_all};
static int (*File_read_at_all[KINDS])(MPI_File, MPI_Offset, void*, int, MPI_Datatype, MPI_Status*) = {
    NULL, MPI_File_read_at_all};

static void look_up(void) {
    *(void**)&Barrier[PLAIN] = underneath("PMPI_Barrier");
    *(void**)&File_open[PLAIN] = underneath("PMPI_File_open");
    *(void**)&File_close[PLAIN] = underneath("PMPI_File_close");
    *(void**)&File_set_view[PLAIN] = underneath("PMPI_File_set_view");
    *(void**)&File_write_at_all[PLAIN] = underneath("PMPI_File_write_at_all");
    *(void**)&File_read_at_all[PLAIN] = underneath("PMPI_File_read_at_all");
}

static int rank, size, reads, interleaved;
static unsigned char *out, *in;
static MPI_File files[KINDS];
static char own_directory[4096], names[KINDS][sizeof own_directory + 16];

static void fail(const char* sentence) {
    fprintf(stderr, "io: %s\n", sentence);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_directory(void) {
    const char* below = getenv("BENCH_IO_DIRECTORY");
    if (!below || !*below) below = "/tmp";
    const int length = snprintf(own_directory, sizeof own_directory, "%s/mpisec-bench-io-XXXXXX", below);
    if (rank == 0 && (length >= (int)sizeof own_directory || !mkdtemp(own_directory)))
        fail("no directory can be made for the file; BENCH_IO_DIRECTORY names one below which it is made");
    MPI_Bcast(own_directory, sizeof own_directory, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (enum kind kind = PLAIN; kind < KINDS; ++kind)
        snprintf(names[kind], sizeof names[kind], "%s/%d", own_directory, (int)kind);
}

static double accesses(enum kind kind, int bytes, int iterations) {
    const int mine = bytes / size;
    const double start = MPI_Wtime();
    for (int i = 0; i < iterations; ++i) {
        const int code =
            reads ? File_read_at_all[kind](files[kind], 0, in, mine, MPI_BYTE, MPI_STATUS_IGNORE)
                  : File_write_at_all[kind](files[kind], 0, out, mine, MPI_BYTE, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) fail("an access failed");
        Barrier[kind](MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / iterations * 1e6;
}

static void open_file(enum kind kind, int bytes) {
    const int mine = bytes / size;
    MPI_Datatype view;
    if (interleaved)
        MPI_Type_vector(mine / PIECE, PIECE, PIECE * size, MPI_BYTE, &view);
    else
        MPI_Type_contiguous(mine, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    if (File_open[kind](MPI_COMM_WORLD, names[kind],
                        MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                        &files[kind]) != MPI_SUCCESS)
        fail("the file cannot be opened; BENCH_IO_DIRECTORY names a directory that all nodes see");
    File_set_view[kind](files[kind], (MPI_Offset)rank * (interleaved ? PIECE : mine), MPI_BYTE, view,
                        "native", MPI_INFO_NULL);
    MPI_Type_free(&view);
    if (File_write_at_all[kind](files[kind], 0, out, mine, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        fail("the file cannot be written");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void measure(const struct options* options, int bytes) {
    const int mine = bytes / size;
    const enum kind first = options->ordinary ? ORDINARY : PLAIN;
    out = malloc((size_t)mine), in = calloc((size_t)mine, 1);
    for (int i = 0; i < mine; ++i) out[i] = (unsigned char)(i * 31 + rank);
    for (enum kind kind = first; kind < KINDS; ++kind) open_file(kind, bytes);
    for (enum kind kind = first; kind < KINDS; ++kind) accesses(kind, bytes, 1);
    int iterations = (int)(options->block_us / (accesses(ORDINARY, bytes, 1) + 1e-3));
    if (iterations < 1) iterations = 1;
    MPI_Bcast(&iterations, 1, MPI_INT, 0, MPI_COMM_WORLD);
    interleave(options, accesses, bytes, iterations, rank == 0);
    for (enum kind kind = first; kind < KINDS; ++kind) {
        memset(in, 0, (size_t)mine);
        File_read_at_all[kind](files[kind], 0, in, mine, MPI_BYTE, MPI_STATUS_IGNORE);
        if (memcmp(out, in, (size_t)mine) != 0) fail("what is in the file is not what was written");
        MPI_Barrier(MPI_COMM_WORLD);
        File_close[kind](&files[kind]);
    }
    free(out), free(in);
}

int main(int argc, char** argv) {
    struct options options = {"67108864", 11, 5000, 0, 0, 0, 0, 0, "write"};
    read_options(&options, "io", argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    reads = strncmp(options.operation, "read", 4) == 0;
    interleaved = strstr(options.operation, "-interleaved") != NULL;
    make_directory();
    if (!options.ordinary) look_up();
    char* sizes = strdup(options.sizes);
    for (char* item = strtok(sizes, ","); item; item = strtok(NULL, ",")) {
        const int least = PIECE * size;
        measure(&options, (atoi(item) + least - 1) / least * least);
    }
    free(sizes);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) rmdir(own_directory);
    MPI_Finalize();
    return 0;
}
