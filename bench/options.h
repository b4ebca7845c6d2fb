/* The command line of a message benchmark. */
#ifndef MPISEC_BENCH_OPTIONS_H
#define MPISEC_BENCH_OPTIONS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BLOCKS = 1001 };

/* What the command line says. */
struct options {
    const char* sizes;                           /* by commas, bytes */
    int blocks;                                  /* pairs of them per size */
    double block_us;                             /* about as long is one */
    int ordinary;                                /* 1: no plain blocks */
    int peer, window, multiple_buffers, against; /* for the benchmarks that have them */
    const char *operation, *driver;              /* likewise */
    int both_ways;                               /* likewise */
};

/* Options of the form --name value into `options`; ends the program with a sentence when one is unknown. */
static void read_options(struct options* options, const char* program, int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--sizes") == 0)
            options->sizes = value;
        else if (strcmp(name, "--blocks") == 0)
            options->blocks = atoi(value);
        else if (strcmp(name, "--block-us") == 0)
            options->block_us = atof(value);
        else if (strcmp(name, "--ordinary") == 0)
            options->ordinary = atoi(value);
        else if (strcmp(name, "--peer") == 0)
            options->peer = atoi(value);
        else if (strcmp(name, "--window") == 0)
            options->window = atoi(value);
        else if (strcmp(name, "--multiple-buffers") == 0)
            options->multiple_buffers = atoi(value);
        else if (strcmp(name, "--both-ways") == 0)
            options->both_ways = atoi(value);
        else if (strcmp(name, "--against") == 0)
            options->against = atoi(value);
        else if (strcmp(name, "--operation") == 0)
            options->operation = value;
        else if (strcmp(name, "--driver") == 0)
            options->driver = value;
        else
            exit((fprintf(stderr, "%s: unknown option %s\n", program, name), 2));
    }
    if (options->blocks < 1 || options->blocks > MAX_BLOCKS)
        exit((fprintf(stderr, "%s: --blocks is 1 to %d\n", program, MAX_BLOCKS), 2));
}

#endif
