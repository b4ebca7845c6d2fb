// Procedures of the program's that throw: MPI libraries let the exception through to the caller, and the program goes on.
#include <mpi.h>

#include <cstdio>

static int size;

static void throw_1(MPI_Comm*, int*, ...) {
    throw 1;
}
static void throw_2(MPI_Win*, int*, ...) {
    throw 2;
}
static int throw_3(MPI_Comm, int, void*, void*, void*, int*) {
    throw 3;
}
[[maybe_unused]] static void throw_4(MPI_File*, int*, ...) {
    throw 4;
}

template <class Call>
static int thrown_by(Call call) {
    try {
        call();
    } catch (int which) {
        return which;
    }
    return 0;
}

int main(int argc, char** argv) {
    int rank, key, value = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm copy, made;
    MPI_Win window;
    MPI_Errhandler of_comm, of_window;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_create_errhandler(throw_1, &of_comm);
    MPI_Win_create_errhandler(throw_2, &of_window);
    MPI_Comm_set_errhandler(copy, of_comm);
    MPI_Win_set_errhandler(window, of_window);
    MPI_Comm_create_keyval(throw_3, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    MPI_Comm_set_attr(copy, key, nullptr);
    const int by_call = thrown_by([&] { MPI_Bcast(&value, 1, MPI_INT, size, copy); });
    const int by_window = thrown_by([&] { MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, window); });
    const int by_copy = thrown_by([&] { MPI_Comm_dup(copy, &made); });
    int by_file = 4;
#ifndef OPEN_MPI  // which calls the handler itself, before the other ranks have heard of the error
    MPI_File file;
    MPI_Errhandler of_files;
    MPI_File_create_errhandler(throw_4, &of_files);
    MPI_File_set_errhandler(MPI_FILE_NULL, of_files);
    by_file = thrown_by([&] {
        MPI_File_open(MPI_COMM_WORLD, "/nowhere/file", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &file);
    });
#endif
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::printf("rank %d: caught %d %d %d %d, %s\n", rank, by_call, by_window, by_copy, by_file,
                sum == size ? "goes on" : "wrong sum");
    MPI_Win_free(&window);
    MPI_Finalize();
}
