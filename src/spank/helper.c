#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// In the child; does not return.
static void become_mpisec(const char* mpisec, char** argv, char** environment, int quiet, int write_end) {
    int count = 0;
    while (argv[count]) ++count;
    const int nothing = quiet ? open("/dev/null", O_WRONLY) : -1;
    if (nothing >= 0) dup2(nothing, STDERR_FILENO);
    const char** words = calloc((size_t)count + 5, sizeof *words);
    if (!words || dup2(write_end, STDOUT_FILENO) < 0) {
        fprintf(stderr, "mpisec: %s cannot be run: %s\n", mpisec, strerror(errno));
        _exit(127);
    }
    const char* first[] = {mpisec, "exec", "--environment", "--"};
    memcpy(words, first, sizeof first);
    for (int i = 0; i < count; ++i) words[4 + i] = argv[i];
    execvpe(mpisec, (char* const*)words, environment);
    fprintf(stderr, "mpisec: %s of plugstack.conf cannot be run: %s\n", mpisec, strerror(errno));
    _exit(127);
}

// A negative number when reading fails (errno), else the number of bytes; `size` when there are more than fit.
static ssize_t read_all(int descriptor, char* output, size_t size) {
    size_t at = 0;
    ssize_t got = 1;
    while (at + 1 < size && got > 0) {
        do got = read(descriptor, output + at, size - 1 - at);
        while (got < 0 && errno == EINTR);
        if (got > 0) at += (size_t)got;
    }
    output[at] = 0;
    if (got < 0) return -1;
    return (ssize_t)(at + 1 < size ? at : size);
}

// 127, after saying what keeps mpisec from answering.
static int complain(const char* mpisec, int quiet, const char* what, const char* reason) {
    if (!quiet)
        fprintf(stderr, "mpisec: %s %s%s: this step is not started, as it could not be protected.\n", mpisec,
                what, reason);
    return 127;
}

// What the child's end means; `got` is what read_all() said.
static int status_of(const char* mpisec, int quiet, int status, ssize_t got, size_t size) {
    char number[16];
    if (got == (ssize_t)size) return complain(mpisec, quiet, "prints more variables than fit", "");
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    snprintf(number, sizeof number, "%d", WTERMSIG(status));
    return complain(mpisec, quiet, "was ended by signal ", number);
}

int mpisec_ask(const char* mpisec, char** argv, char** environment, int quiet, char* output, size_t size) {
    int ends[2], status = 0;
    output[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return complain(mpisec, quiet, "cannot be asked: ", strerror(errno));
    const pid_t child = fork();
    const int fork_error = errno;
    if (child == 0) become_mpisec(mpisec, argv, environment, quiet, ends[1]);
    close(ends[1]);
    const ssize_t got = child > 0 ? read_all(ends[0], output, size) : 0;
    const int read_error = errno;
    close(ends[0]);
    if (child < 0) return complain(mpisec, quiet, "cannot be asked: ", strerror(fork_error));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return complain(mpisec, quiet, "cannot be asked: ", strerror(errno));
    if (got < 0) return complain(mpisec, quiet, "cannot be heard: ", strerror(read_error));
    return status_of(mpisec, quiet, status, got, size);
}
