/* The MPI library underneath MPIsec, for benchmarks that run plain and sealed calls in one job: its own PMPI_
 * procedures, looked up in it. Only the benchmark's test pattern ever travels that way. */
#ifndef MPISEC_BENCH_UNDERNEATH_H
#define MPISEC_BENCH_UNDERNEATH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Whose calls: the MPI library's own, or the program's ordinary ones. */
enum kind { PLAIN, ORDINARY, KINDS };

/* Ends the program with a sentence when there is none of that name. */
static void* underneath(const char* procedure) {
    static const char* const names[] = {"libmpi_abi.so.1", "libmpi.so.12", "libmpich.so.12", "libmpi.so.40"};
    static void* library;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !library; ++i)
        library = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY);
    void* found = library ? dlsym(library, procedure) : NULL;
    if (!found) {
        fprintf(stderr, "bench: %s %s\n", library ? "the MPI library has no" : "no MPI library here for",
                procedure);
        exit(1);
    }
    return found;
}

static int ascending(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

/* Sorts the values. */
static double median(double* values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

#endif
