/* Calls MPI past every preloaded library, as a language runtime with its own dlopen may. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(library, "MPI_Init");
    int (*finalize)(void) = (int (*)(void))dlsym(library, "MPI_Finalize");
    init(&argc, &argv);
    finalize();
    puts("done");
    return 0;
}
