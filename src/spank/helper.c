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
    const char** words = calloc((size_t)count + 5, sizeof *words);
    if (!words || dup2(write_end, STDOUT_FILENO) < 0) _exit(127);
    const int nothing = quiet ? open("/dev/null", O_WRONLY) : -1;
    if (nothing >= 0) dup2(nothing, STDERR_FILENO);
    const char* first[] = {mpisec, "exec", "--environment", "--"};
    memcpy(words, first, sizeof first);
    for (int i = 0; i < count; ++i) words[4 + i] = argv[i];
    execvpe(mpisec, (char* const*)words, environment);
    fprintf(stderr, "mpisec: %s of plugstack.conf cannot be run: %s\n", mpisec, strerror(errno));
    _exit(127);
}

// False when there is more than that.
static int read_all(int descriptor, char* output, size_t size) {
    size_t at = 0;
    while (at + 1 < size) {
        const ssize_t got = read(descriptor, output + at, size - 1 - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        at += (size_t)got;
    }
    output[at] = 0;
    return at + 1 < size;
}

int mpisec_ask(const char* mpisec, char** argv, char** environment, int quiet, char* output, size_t size) {
    int ends[2], status = 0;
    output[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return 127;
    const pid_t child = fork();
    if (child == 0) become_mpisec(mpisec, argv, environment, quiet, ends[1]);
    close(ends[1]);
    const int whole = child > 0 && read_all(ends[0], output, size);
    close(ends[0]);
    if (child < 0) return 127;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return 127;
    return whole && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}
