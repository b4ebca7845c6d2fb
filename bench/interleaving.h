/* How a message benchmark times a size: blocks of plain and of sealed calls take turns, in an order that
 * changes, so that a machine that changes its speed changes both alike; each pair of blocks gives one ratio.
 *
 * Run under `mpisec exec`, the sealed calls are the program's ordinary MPI_ calls; the plain ones go straight
 * to the MPI library (underneath.h). With `--ordinary 1` only the ordinary calls are timed, whatever they
 * are: plain MPI over an encrypted network, for one. */
#ifndef MPISEC_BENCH_INTERLEAVING_H
#define MPISEC_BENCH_INTERLEAVING_H

#include "options.h"
#include "underneath.h"

/* Does the benchmark's exchange so often, with calls of one kind; returns microseconds each. */
typedef double exchange(enum kind kind, int bytes, int iterations);

/* Times one size with so many exchanges per block, and prints what this rank found as a line of
 * JSON if `print`: {"bytes": B, "time_us": median, "plain_us": median, "ratio": median of the pairs}. */
static void interleave(const struct options* options, exchange* block, int bytes, int iterations, int print) {
    static double times[KINDS][MAX_BLOCKS], ratios[MAX_BLOCKS];
    for (int i = 0; i < options->blocks; ++i) {
        if (options->ordinary) {
            times[ORDINARY][i] = block(ORDINARY, bytes, iterations);
            continue;
        }
        const enum kind first = i & 1 ? ORDINARY : PLAIN, second = i & 1 ? PLAIN : ORDINARY;
        times[first][i] = block(first, bytes, iterations);
        times[second][i] = block(second, bytes, iterations);
        ratios[i] = times[ORDINARY][i] / times[PLAIN][i];
    }
    if (!print) return;
    printf("{\"bytes\": %d, \"time_us\": %.3f", bytes, median(times[ORDINARY], options->blocks));
    if (!options->ordinary)
        printf(", \"plain_us\": %.3f, \"ratio\": %.4f", median(times[PLAIN], options->blocks),
               median(ratios, options->blocks));
    printf("}\n");
    fflush(stdout);
}

#endif
