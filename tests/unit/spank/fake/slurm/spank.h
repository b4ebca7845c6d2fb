// What plugin.c takes of Slurm's header of this name, so that a test can stand in for slurmstepd. The numbers are not Slurm's.
#pragma once

#include <stdint.h>

typedef struct spank_of_the_test* spank_t;
typedef int(spank_f)(spank_t spank, int count, char** words);
typedef enum spank_err { ESPANK_SUCCESS, ESPANK_ERROR, ESPANK_ENV_EXISTS, ESPANK_ENV_NOEXIST } spank_err_t;
typedef enum spank_context { S_CTX_LOCAL, S_CTX_REMOTE, S_CTX_SLURMD, S_CTX_JOB_SCRIPT } spank_context_t;
typedef enum spank_item { S_JOB_ID, S_JOB_STEPID, S_JOB_ARGV, S_JOB_ENV, S_TASK_ID } spank_item_t;

struct spank_option {
    const char *name, *arginfo, *usage;
    int has_arg, val;
    int (*cb)(int value, const char* text, int remote);
};

#define SPANK_PLUGIN(name, version)

#ifdef __cplusplus
extern "C" {
#endif
spank_context_t spank_context(void);
spank_err_t spank_option_register(spank_t spank, struct spank_option* option);
spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...);
spank_err_t spank_getenv(spank_t spank, const char* name, char* value, int size);
spank_err_t spank_setenv(spank_t spank, const char* name, const char* value, int overwrite);
const char* spank_strerror(spank_err_t error);
void slurm_error(const char* format, ...);
#ifdef __cplusplus
}
#endif
