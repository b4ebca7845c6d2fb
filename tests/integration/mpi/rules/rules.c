/* Runs rules in one MPI job:  rules [--single] [NAME…]     (all when none is named)
 *
 * Prints "begin NAME" and "ok NAME" on rank 0 for each, then "rules: done". --single initializes with
 * MPI_Init, without threads. `rules --list` prints the names without starting MPI. */
#include "rules.h"

#include "harness.h"

static const struct {
    const char* name;
    void (*run)(void);
} rules[] = {
#define RULE(name) {#name, rule_##name},
#include "rules.inc"
#undef RULE
};
enum { RULES = sizeof rules / sizeof *rules };

static void find_nodes(void) {
    MPI_Comm node;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    int lowest = rank;
    OK(MPI_Bcast(&lowest, 1, MPI_INT, 0, node));
    OK(MPI_Comm_free(&node));
    node_of = memory((size_t)size * sizeof *node_of);
    OK(MPI_Allgather(&lowest, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < size; ++i) {
        if (node_of[i] == i)
            node_of[i] = nodes++;
        else
            node_of[i] = node_of[node_of[i]];
    }
}

static int wanted(const char* name, int argc, char** argv) {
    int named = 0;
    for (int i = 1; i < argc; ++i) {
        if (argv[i][0] == '-') continue;
        named = 1;
        if (strcmp(argv[i], name) == 0) return 1;
    }
    return !named;
}

static void run_rules(int argc, char** argv) {
    for (int i = 0; i < RULES; ++i) {
        if (!wanted(rules[i].name, argc, argv)) continue;
        double start = now();
        if (rank == 0) printf("begin %s\n", rules[i].name), fflush(stdout);
        rules[i].run();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0) printf("ok %s %.2f s\n", rules[i].name, now() - start), fflush(stdout);
    }
}

int main(int argc, char** argv) {
    int single = argc > 1 && strcmp(argv[1], "--single") == 0;
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for (int i = 0; i < RULES; ++i) printf("%s\n", rules[i].name);
        return 0;
    }
    if (single)
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads_given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    sealed = getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "libmpisec");
    find_nodes();
    if (rank == 0) printf("rules: %d ranks on %d nodes, %s\n", size, nodes, sealed ? "sealed" : "plain");
    run_rules(argc, argv);
    free(node_of);
    if (rank == 0) printf("rules: done\n"), fflush(stdout);
    MPI_Barrier(
        MPI_COMM_WORLD); /* and a moment: MPICH 4.0.2 may hang in MPI_Finalize otherwise (docs/lab.md) */
    sleep_seconds(0.02);
    MPI_Finalize();
    return 0;
}
