// Slurm's plug-in of MPIsec (SPANK): what `mpisec exec` does for a program, done for every task of a step, so that a site can protect the jobs of
// a partition, and require it (docs/slurm.md).
//
//   srun, sbatch, salloc   --mpisec[=on|off] is read
//   slurmstepd             per task, as its user, just before the program: one that must not run as it is is refused, for others
//                          `mpisec exec --environment PROGRAM…` says what to set
//
// A batch script and its shell are left alone: what they start on other nodes is a step of its own.
#include <slurm/spank.h>

#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "options.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(mpisec, 1)
spank_f slurm_spank_init, slurm_spank_task_init;
#pragma GCC visibility pop

static struct mpisec_site site;
static enum mpisec_wish wish = mpisec_unsaid;

static int take_option(int value, const char* text, int remote) {
    (void)value, (void)remote;
    if (mpisec_read_wish(&wish, text) == 0) return 0;
    slurm_error("mpisec: --mpisec=%s makes no sense: --mpisec, --mpisec=on or --mpisec=off", text);
    return -1;
}

static struct spank_option option = {
    .name = "mpisec",
    .arginfo = "on|off",
    .usage = "Seal the MPI traffic between nodes (MPIsec)",
    .has_arg = 2,
    .val = 0,
    .cb = take_option,
};

int slurm_spank_init(spank_t spank, int count, char** words) {
    const char* wrong = mpisec_read_site(&site, count, words);
    if (wrong) {
        slurm_error("mpisec: plugstack.conf says %s: mpisec=, key_file=, protect= and require= are known",
                    wrong);
        return -1;
    }
    if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT) return 0;
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

// A step that srun starts with a program; not a batch script, a container for what comes from outside, or a shell of salloc's.
static int is_program_step(spank_t spank) {
    uint32_t step = 0;
    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step <= SLURM_MAX_NORMAL_STEP_ID;
}

static enum mpisec_duty duty_of(spank_t spank) {
    char partition[256] = "";
    if (!is_program_step(spank)) return mpisec_leave;
    spank_getenv(spank, "SLURM_JOB_PARTITION", partition, sizeof partition);
    return mpisec_duty_of(&site, wish, partition);
}

// Launchers' own daemons: what they start later cannot be seen here.
static int starts_others(const char* program) {
    static const char* const daemons[] = {"hydra_pmi_proxy", "hydra_bstrap_proxy", "prted", "orted"};
    const char* slash = strrchr(program, '/');
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; ++i)
        if (strcmp(slash ? slash + 1 : program, daemons[i]) == 0) return 1;
    return 0;
}

// Why the step must not run, or null.
static const char* reason_to_refuse(spank_t spank, const char* program) {
    char unprotected[16] = "";
    spank_getenv(spank, "MPISEC_UNPROTECTED", unprotected, sizeof unprotected);
    if (wish == mpisec_off) return "--mpisec=off is not possible here";
    if (strcmp(unprotected, "allow") == 0) return "MPISEC_UNPROTECTED=allow is not possible here";
    if (starts_others(program))
        return "programs that mpiexec starts cannot be seen to be protected: start them with srun "
               "(--mpi=pmi2, --mpi=pmix)";
    return NULL;
}

// In a task, because a step of which none was started ends with the exit status 0. Every task of the node would say the same: its first one
// does.
static int refuse(spank_t spank, const char* reason) {
    int task = 0;
    spank_get_item(spank, S_TASK_ID, &task);
    if (task == 0)
        fprintf(stderr,
                "mpisec: this partition requires that MPI traffic is protected by MPIsec, and this step is "
                "refused: %s.\n",
                reason);
    return -1;
}

// Without any, an MPI program's processes find nobody to talk to (and MPIsec says so to one that expects others).
static int has_process_manager(spank_t spank) {
    char text[8];
    static const char* const variables[] = {"PMI_RANK", "PMI_FD", "PMIX_RANK", "PMIX_NAMESPACE"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; ++i)
        if (spank_getenv(spank, variables[i], text, sizeof text) != ESPANK_ENV_NOEXIST) return 1;
    return 0;
}

static int complain_of_environment(const char* subject, const char* reason) {
    fprintf(stderr,
            "mpisec: Slurm cannot set %s for this step (%s): it is not started, as it could not be "
            "protected.\n",
            subject, reason);
    return -1;
}

// 0, or -1 after saying why the step cannot be started.
static int set_variable(spank_t spank, const char* name, const char* value, int overwrite) {
    const spank_err_t error = spank_setenv(spank, name, value, overwrite);
    if (error == ESPANK_SUCCESS || (!overwrite && error == ESPANK_ENV_EXISTS)) return 0;
    return complain_of_environment(name, spank_strerror(error));
}

// As above; what mpisec printed is a variable in each line.
static int set_lines(spank_t spank, char* lines) {
    char* rest = NULL;
    for (char* line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char* value = strchr(line, '=');
        if (!value) return complain_of_environment("its variables", "mpisec printed what is none");
        *value++ = 0;
        if (set_variable(spank, line, value, 1) != 0) return -1;
    }
    return 0;
}

// As above.
static int set_key_file(spank_t spank) {
    char path[mpisec_path_bytes];
    uint32_t job = 0;
    if (!*site.key_file) return 0;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        mpisec_expand(site.key_file, job, path, sizeof path) != 0)
        return complain_of_environment("MPISEC_KEY_FILE", "key_file= of plugstack.conf is too long");
    return set_variable(spank, "MPISEC_KEY_FILE", path, 0);  // a key of the user's own is as good
}

static int complain_of_slurm(void) {
    fprintf(stderr,
            "mpisec: Slurm does not tell what this step runs: it is not started, as it could not be "
            "protected.\n");
    return -1;
}

int slurm_spank_task_init(spank_t spank, int count, char** words) {
    (void)count, (void)words;
    static char lines[2 * mpisec_path_bytes];
    int words_of_program = 0;
    char **argv = NULL, **environment = NULL;
    const enum mpisec_duty duty = duty_of(spank);
    if (duty == mpisec_leave) return 0;
    if (spank_get_item(spank, S_JOB_ARGV, &words_of_program, &argv) != ESPANK_SUCCESS || words_of_program < 1)
        return complain_of_slurm();
    if (set_key_file(spank) != 0) return -1;
    const char* reason = duty == mpisec_require ? reason_to_refuse(spank, argv[0]) : NULL;
    if (reason) return refuse(spank, reason);
    if (duty == mpisec_protect && starts_others(argv[0])) {
        fprintf(stderr,
                "mpisec: what mpiexec starts is not protected by --mpisec: use srun, or mpiexec … mpisec "
                "exec PROGRAM.\n");
        return duty == mpisec_protect && wish == mpisec_on ? -1 : 0;
    }
    // Over a configuration file's.
    if (duty == mpisec_require && set_variable(spank, "MPISEC_UNPROTECTED", "refuse", 1) != 0) return -1;
    if (spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) return complain_of_slurm();
    const int needed = has_process_manager(spank);
    const int status = mpisec_ask(site.mpisec, argv, environment, !needed, lines, sizeof lines);
    if (status != 0 && needed) return -1;  // mpisec, or mpisec_ask(), has said why
    return status == 0 ? set_lines(spank, lines) : 0;
}
