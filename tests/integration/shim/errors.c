// Calls that end in an error, for the error handler of one communicator or another (test_errors.py).
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, calls_of_handler;

static void count(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    ++calls_of_handler;
}

static void say_code(const char* what, int code) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0, class = 0;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    printf("%s: rank %d: %s [%d] %s\n", what, rank, code ? "error" : "no error", length, code ? text : "");
    fflush(stdout);
}

/// Ranks of the world with an odd number, which are on both nodes.
static MPI_Comm odd_ranks(void) {
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    return part;
}

static int window_on(MPI_Comm comm) {
    void* memory;
    MPI_Win window;
    return MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, comm, &memory, &window);
}

static void truncated_on(MPI_Comm comm) {
    char eight[8] = {0};
    int here, members;
    MPI_Comm_rank(comm, &here);
    MPI_Comm_size(comm, &members);
    if (here == 0) MPI_Send(eight, 8, MPI_CHAR, members - 1, 1, comm);
    if (here == members - 1) MPI_Recv(eight, 4, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE);
}

/// Unlocks what is not locked; the handler of a window is fatal unless the program gives it another one.
static void unlock_on(MPI_Comm comm) {
    int memory = 0;
    MPI_Win window;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, comm, &window);
    if (rank == size - 1) MPI_Win_unlock(0, window);
}

/// Ends a read that has not begun.
static void end_read_of(const char* name, MPI_Comm comm) {
    MPI_File file;
    int memory = 0;
    MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    if (rank == size - 1) MPI_File_read_all_end(file, &memory, MPI_STATUS_IGNORE);
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define HAS_SESSIONS
#endif

#ifdef HAS_SESSIONS
static MPI_Group world_group(void) {
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    return group;
}

static void from_group(const char* how) {
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (!strcmp(how, "fatal")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    } else if (!strcmp(how, "user")) {
        MPI_Comm_create_errhandler(count, &handler);
    } else {
        handler = MPI_ERRORS_RETURN;
    }
    say_code(how, MPI_Comm_create_from_group(world_group(), "errors", MPI_INFO_NULL, handler, NULL));
    printf("rank %d: handler called %d times\n", rank, calls_of_handler);
}
#endif

static void finalize(void) {
    int sum;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum == size * (size - 1) / 2) printf("rank %d: finalizes at exit\n", rank);
    fflush(stdout);  // MPICH's launcher loses some output after MPI_Finalize in an exit handler, plain too
    MPI_Finalize();
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "finalizes-at-exit")) atexit(finalize);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!strcmp(what, "window-part")) {
        MPI_Comm part = odd_ranks();
        if (rank % 2) window_on(part);
    } else if (!strcmp(what, "window-world")) {
        window_on(MPI_COMM_WORLD);
    } else if (!strcmp(what, "window-unlock")) {
        unlock_on(MPI_COMM_WORLD);
    } else if (!strcmp(what, "file-end")) {
        end_read_of(argv[3], MPI_COMM_WORLD);
    } else if (!strcmp(what, "truncated-part")) {
        MPI_Comm part = odd_ranks();
        if (rank % 2) truncated_on(part);
    } else if (!strcmp(what, "send-nowhere-self")) {
        if (rank == size - 1) MPI_Send(&rank, 1, MPI_INT, 77, 1, MPI_COMM_SELF);
    } else if (!strcmp(what, "overlap-self")) {  // MPICH: its own assertion, and exit()
        char eight[8] = {0};
        if (rank == size - 1)
            MPI_Sendrecv(eight, 8, MPI_CHAR, 0, 1, eight, 4, MPI_CHAR, 0, 1, MPI_COMM_SELF,
                         MPI_STATUS_IGNORE);
    } else if (!strcmp(what, "exits")) {
        if (rank == size - 1) exit(7);
    } else if (!strcmp(what, "exits-well")) {  // of a child: nobody's concern
        if (rank == size - 1 && fork() == 0) exit(7);
    } else if (!strcmp(what, "finalizes-at-exit")) {
        exit(atoi(argv[2]));
    } else if (!strcmp(what, "root-nowhere")) {
        MPI_Bcast(&rank, 1, MPI_INT, 77, MPI_COMM_WORLD);
    } else if (!strcmp(what, "text")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        for (int i = 0; i < 3; ++i) say_code("window", window_on(MPI_COMM_WORLD));
    } else if (!strcmp(what, "handler")) {
        MPI_Errhandler handler;
        MPI_Comm_create_errhandler(count, &handler);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        say_code("window", window_on(MPI_COMM_WORLD));
        printf("rank %d: handler called %d times\n", rank, calls_of_handler);
    }
#ifdef HAS_SESSIONS
    else if (!strcmp(what, "from-group"))
        from_group(argv[2]);
#endif
    MPI_Finalize();
    printf("the end of rank %d\n", rank);
    return 0;
}
