// Asks `mpisec exec --environment` what a task's environment needs.
#pragma once

#include <stddef.h>

// Runs `mpisec exec --environment -- ARGV…` with the task's environment; what it prints goes to `output` (lines NAME=VALUE), with a 0 after it.
// quiet: its own messages are dropped, else they are the task's. Returns its exit status, or 127 when it cannot be run.
int mpisec_ask(const char* mpisec, char** argv, char** environment, int quiet, char* output, size_t size);
