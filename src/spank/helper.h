// Asks `mpisec exec --environment` what a task's environment needs.
#pragma once

#include <stddef.h>

// Runs `mpisec exec --environment -- ARGV…` with the task's environment; what it prints goes to `output` (lines NAME=VALUE), with a 0 after it.
// Returns its exit status, or 127 when it cannot be run, is killed, or prints more than `size` bytes. Why is then on standard error: `mpisec` has
// said so, or this does. quiet: nothing is said.
int mpisec_ask(const char* mpisec, char** argv, char** environment, int quiet, char* output, size_t size);
