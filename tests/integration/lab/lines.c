/* Prints a long line in two parts to both standard streams and says in how many pieces each leaves the process. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Behind a socket that keeps records apart, each write is one. */
static int pieces_of(FILE* stream, int descriptor) {
    int ends[2], pieces = 0;
    const int kept = dup(descriptor);
    char record[1024], line[301] = "";
    if (kept < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || dup2(ends[1], descriptor) < 0)
        return -1;
    memset(line, 'x', 300);
    fprintf(stream, "%s, ", line);
    fprintf(stream, "%s\n", line);
    dup2(kept, descriptor);
    close(ends[1]);
    while (recv(ends[0], record, sizeof record, 0) > 0) ++pieces;
    close(ends[0]);
    return pieces;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int output = pieces_of(stdout, STDOUT_FILENO), errors = pieces_of(stderr, STDERR_FILENO);
    printf("output %d errors %d\n", output, errors);
    MPI_Finalize();
    return 0;
}
