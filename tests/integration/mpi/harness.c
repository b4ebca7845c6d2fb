#include "harness.h"

#include <stdarg.h>
#include <time.h>

int rank, size, threads_given, nodes, sealed;
int* node_of;

const int sizes[] = {0,
                     1,
                     16,
                     1000,
                     THRESHOLD - 1,
                     THRESHOLD,
                     THRESHOLD + 1,
                     THRESHOLD + SEGMENT - 1,
                     THRESHOLD + SEGMENT,
                     THRESHOLD + SEGMENT + 1,
                     THRESHOLD + 3 * SEGMENT,
                     1 << 20,
                     8 << 20};
const int size_count = sizeof sizes / sizeof *sizes;
const int few_sizes[] = {0, 1, 16, THRESHOLD, THRESHOLD + 1, THRESHOLD + SEGMENT + 1};
const int few_count = sizeof few_sizes / sizeof *few_sizes;

void fail(const char* file, int line, const char* format, ...) {
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const char* slash = strrchr(file, '/');
    fprintf(stderr, "FAILED rank %d of %d, %s:%d: %s\n", rank, size, slash ? slash + 1 : file, line,
            sentence);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

void check_code(const char* file, int line, const char* call, int code) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    fail(file, line, "%s returned class %d: %s", call, class_of(code), text);
}

int class_of(int code) {
    int class = code;
    MPI_Error_class(code, &class);
    return class;
}

/* A multiplicative generator (Lehmer, 64 bit): quick, and different seeds give unlike bytes. */
static uint64_t next(uint64_t* state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state ^ (*state >> 29);
}

void fill(void* buffer, size_t n, uint64_t seed) {
    unsigned char* bytes = buffer;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word = next(&state);
        memcpy(bytes + i, &word, 8);
    }
    uint64_t word = next(&state);
    memcpy(bytes + i, &word, n - i);
}

void check_filled(const char* file, int line, const void* buffer, size_t n, uint64_t seed) {
    unsigned char* expected = memory(n);
    fill(expected, n, seed);
    if (n && memcmp(buffer, expected, n) != 0) {
        size_t i = 0;
        while (((const unsigned char*)buffer)[i] == expected[i]) ++i;
        fail(file, line, "of %zu received bytes number %zu differs: %02x instead of %02x", n, i,
             ((const unsigned char*)buffer)[i], expected[i]);
    }
    free(expected);
}

uint64_t seed_of(int from, int to, int tag, int n) {
    return ((uint64_t)from * 1009 + (uint64_t)to) * 1000003u + (uint64_t)tag * 7919u + (uint64_t)n;
}

void check_status(const char* file, int line, const MPI_Status* status, int source, int tag, int n) {
    int count = -1, elements = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    MPI_Get_elements(status, MPI_BYTE, &elements);
    if (status->MPI_SOURCE != source || status->MPI_TAG != tag || count != n || elements != n)
        fail(file, line, "the status says source %d tag %d count %d elements %d; it must say %d, %d, %d, %d",
             status->MPI_SOURCE, status->MPI_TAG, count, elements, source, tag, n, n);
}

void* memory(size_t n) {
    void* bytes = malloc(n ? n : 1);
    if (!bytes) {
        fprintf(stderr, "FAILED: no memory for %zu bytes\n", n);
        exit(1);
    }
    return bytes;
}

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void sleep_seconds(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}
