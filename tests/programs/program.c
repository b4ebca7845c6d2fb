/* Executes random programs:  program SCRIPT TRACE [SECONDS]
 *
 * SCRIPT has one or many programs, each begun by a line `program`. Rank r writes TRACE.r, and how often it
 * called which procedure to TRACE.calls.r. A program that takes more than SECONDS (30) ends the job. */
#include "program.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { MOST_THREADS = 3 };
static char* script;
static struct step* steps;
static int count;
int world_rank, world_size;

static void read_script(const char* path) {
    FILE* file = fopen(path, "r");
    if (!file) give_up("%s cannot be read", path);
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    script = get_memory(length + 1);
    if (fread(script, 1, length, file) != length) give_up("%s cannot be read", path);
    fclose(file);
    int lines = 1, number = 0;
    for (size_t i = 0; i < length; ++i) lines += script[i] == '\n';
    steps = get_memory((size_t)lines * sizeof *steps);
    char* rest = NULL;
    for (char* line = strtok_r(script, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (parse_step(&steps[count], line, ++number)) ++count;
}

static void too_long(int signal) {
    (void)signal;
    static const char text[] = "program: a program takes too long\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(5);
    _exit(4);
}

static void execute(const struct step* step) {
    static int (*const kinds[])(const struct step*) = {communicator_step, datatype_step,   request_step,
                                                       message_step,      collective_step, operation_step,
                                                       attribute_step,    error_step,      group_step};
    begin_line(step);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (!kinds[i](step)) continue;
        end_line();
        return;
    }
    give_up("line %d: no step is called `%s`", step->number, step->verb);
}

static void finish_program(void) {
    struct step end = {.verb = (char*)"end"};
    begin_line(&end);
    finish_requests();
    free_attributes();
    free_communicators();
    free_types();
    free_operations();
    free_handlers();
    OK(MPI_Barrier, (MPI_COMM_WORLD));
    end_line();
}

struct part {
    const struct step* first;
    const struct step* end;
    int thread;
};

static void* run_part(void* argument) {
    const struct part* part = argument;
    keep_lines();
    for (const struct step* step = part->first; step < part->end; ++step)
        if (value(step, "thread", 0) == part->thread) execute(step);
    return take_lines();
}

/* The steps up to `join`, by several threads. Those of one thread use objects that no other one uses. */
static int run_threads(int i) {
    int end = i;
    while (end < count && !verb_is(&steps[end], "join") && !verb_is(&steps[end], "program")) ++end;
    pthread_t threads[MOST_THREADS];
    struct part parts[MOST_THREADS];
    for (int t = 1; t < MOST_THREADS; ++t) {
        parts[t] = (struct part){&steps[i], &steps[end], t};
        if (pthread_create(&threads[t], NULL, run_part, &parts[t]) != 0) give_up("no thread can be made");
    }
    for (int t = 1; t < MOST_THREADS; ++t) {
        void* lines = NULL;
        pthread_join(threads[t], &lines);
        write_lines(lines);
    }
    return end;
}

static void run_steps(unsigned seconds) {
    for (int i = 0; i < count; ++i) {
        const struct step* step = &steps[i];
        if (verb_is(step, "program")) {
            if (i) finish_program();
            alarm(seconds);
            begin_line(step);
            say(" seed=%ld", value(step, "seed", 0));
            end_line();
        } else if (verb_is(step, "threads")) {
            for (int id = 2; id < MOST_COMMS; ++id) finish_duplicate(id);
            begin_line(step);
            end_line();
            i = run_threads(i + 1) - 1;
        } else if (!verb_is(step, "join")) {
            execute(step);
        }
    }
    finish_program();
    alarm(0);
}

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

/* MPICH 4.0 over UCX hangs in MPI_Finalize at times, most often when it is entered right after the last
 * message. */
static void finalize(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (ON_MPICH == 4) {
        usleep(20000);
        signal(SIGALRM, leave);
        alarm(5);
    }
    MPI_Finalize();
}

int main(int argc, char** argv) {
    if (argc < 3) give_up("use: program SCRIPT TRACE [SECONDS]");
    int threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (world_size > MOST_RANKS) give_up("at most %d ranks", MOST_RANKS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    signal(SIGALRM, too_long);
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[2], world_rank);
    open_trace(path);
    read_script(argv[1]);
    predefine_types();
    run_steps(argc > 3 ? (unsigned)atoi(argv[3]) : 30);
    snprintf(path, sizeof path, "%s.calls.%d", argv[2], world_rank);
    write_calls(path);
    finalize();
    return 0;
}
