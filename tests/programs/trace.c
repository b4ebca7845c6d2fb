/* What a rank tells of its run: one line per step, the same plain and sealed. */
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "program.h"

enum { LINE = 65536, CALLBACKS = 64 };
struct line {
    char text[LINE];
    size_t length;
    char called[CALLBACKS][96];
    int calls;
    char* kept;
    size_t kept_length;
    int keep;
};
static __thread struct line* line;
static FILE* file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct call_site* sites;

void count_call(struct call_site* site) {
    __atomic_fetch_add(&site->calls, 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&site->known, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&lock);
    if (!site->known) {
        site->next = sites;
        sites = site;
        __atomic_store_n(&site->known, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

void write_calls(const char* path) {
    FILE* out = fopen(path, "w");
    if (!out) give_up("%s cannot be written", path);
    for (struct call_site* site = sites; site; site = site->next)
        fprintf(out, "%s %ld\n", site->procedure, site->calls);
    fclose(out);
}

void give_up(const char* format, ...) {
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "program: rank %d: %s\n", world_rank, sentence);
    _exit(3);
}

void open_trace(const char* path) {
    file = fopen(path, "w");
    if (!file) give_up("%s cannot be written", path);
    setvbuf(file, NULL, _IOLBF, 1 << 16);
}

static void put(const char* format, va_list arguments) {
    if (!line) line = calloc(1, sizeof *line);
    int n = vsnprintf(line->text + line->length, LINE - line->length, format, arguments);
    line->length += (size_t)n;
    if (line->length >= LINE) line->length = LINE - 1;
}

void say(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put(format, arguments);
    va_end(arguments);
}

void say_called(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!line) line = calloc(1, sizeof *line);
    if (line->calls < CALLBACKS) vsnprintf(line->called[line->calls++], 96, format, arguments);
    va_end(arguments);
}

/* A step that hangs is the last one of the trace. */
void begin_line(const struct step* step) {
    say("%d %s", step->number, step->verb);
    if (line->keep) return;
    pthread_mutex_lock(&lock);
    fputs(line->text, file);
    fflush(file);
    pthread_mutex_unlock(&lock);
    line->length = 0;
    line->text[0] = 0;
}

static int compare(const void* a, const void* b) {
    return strcmp(a, b);
}

int callbacks(void) {
    return line ? line->calls : 0;
}

void end_line(void) {
    qsort(line->called, (size_t)line->calls, sizeof *line->called, compare);
    for (int i = 0; i < line->calls; ++i) say(" [%s]", line->called[i]);
    line->calls = 0;
    say("\n");
    if (line->keep) {
        line->kept = realloc(line->kept, line->kept_length + line->length + 1);
        memcpy(line->kept + line->kept_length, line->text, line->length + 1);
        line->kept_length += line->length;
    } else {
        fputs(line->text, file);
        fflush(file);
    }
    line->length = 0;
    line->text[0] = 0;
}

void keep_lines(void) {
    if (!line) line = calloc(1, sizeof *line);
    line->keep = 1;
}

char* take_lines(void) {
    char* text = line->kept;
    free(line);
    line = NULL;
    return text;
}

void write_lines(char* text) {
    if (text) fputs(text, file);
    fflush(file);
    free(text);
}

int class_of(int code) {
    int class = code;
    MPI_Error_class(code, &class);
    return class;
}

int note_code(const char* what, int code) {
    if (code != MPI_SUCCESS) say(" %s:class=%d", what, class_of(code));
    return code;
}

uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void* get_memory(size_t n) {
    void* bytes = calloc(1, n ? n : 1);
    if (!bytes) give_up("no memory for %zu bytes", n);
    return bytes;
}
