/* Linked into each program that compile_mpi makes: what it prints leaves it by whole lines, so that those of a job's ranks do not run
 * into each other. MPI_Init of MPICH and of Intel MPI makes standard output unbuffered, as standard error always is, and glibc 2.37 and
 * newer write what printf puts into an unbuffered stream in pieces of 128 bytes. */
#ifndef _GNU_SOURCE /* which C++ compilers define */
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <stdio.h>

enum { LONGEST_LINE = 1 << 16 };
typedef int set_buffer(FILE*, char*, int, size_t);

static int set_real_buffer(FILE* stream, char* buffer, int mode, size_t size) {
    return ((set_buffer*)dlsym(RTLD_NEXT, "setvbuf"))(stream, buffer, mode, size);
}

__attribute__((constructor)) static void write_by_lines(void) {
    static char output[LONGEST_LINE], errors[LONGEST_LINE];
    set_real_buffer(stdout, output, _IOLBF, sizeof output);
    set_real_buffer(stderr, errors, _IOLBF, sizeof errors);
}

#ifdef __cplusplus
extern "C" {
#endif

/* These two come before the C library's, for the MPI library too. */
int setvbuf(FILE* stream, char* buffer, int mode, size_t size) {
    return stream == stdout || stream == stderr ? 0 : set_real_buffer(stream, buffer, mode, size);
}

void setbuf(FILE* stream, char* buffer) {
    (void)setvbuf(stream, buffer, buffer ? _IOFBF : _IONBF, BUFSIZ);
}

#ifdef __cplusplus
}
#endif
