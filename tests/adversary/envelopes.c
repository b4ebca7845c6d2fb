/* The network, as far as envelopes go: what MPI says of a message before MPIsec has verified it. Between the MPI library and MPIsec
 * (LD_PRELOAD, MPISEC_LAB_ENVELOPE):
 *
 *   moved       once armed, what this rank receives from rank 2 is the message of rank 3, and the envelope says so
 *   source=N    on MPIsec's own communicators the first probes for any source find a message of rank N */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int armed;

void adversary_arm(void) {
    armed = 1;
}
void adversary_disarm(int* frames, int* segments) {
    armed = *frames = *segments = 0;
}

static const char* what(void) {
    const char* given = getenv("MPISEC_LAB_ENVELOPE");
    return given ? given : "";
}

static int from(int source) {
    return armed && source == 2 && strcmp(what(), "moved") == 0 ? 3 : source;
}

int PMPI_Recv(void* buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
    int (*real)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) =
        (int (*)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))dlsym(RTLD_NEXT, "PMPI_Recv");
    return real(buf, n, type, from(source), tag, comm, status);
}

int PMPI_Irecv(void* buf, int n, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int (*real)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) =
        (int (*)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))dlsym(RTLD_NEXT, "PMPI_Irecv");
    return real(buf, n, type, from(source), tag, comm, request);
}

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    int (*real)(int, int, MPI_Comm, int*, MPI_Status*) =
        (int (*)(int, int, MPI_Comm, int*, MPI_Status*))dlsym(RTLD_NEXT, "PMPI_Iprobe");
    const int code = real(source, tag, comm, flag, status);
    const char* given = what();
    static int shown;
    if (shown < 3 && source == MPI_ANY_SOURCE && comm != MPI_COMM_WORLD &&
        strncmp(given, "source=", 7) == 0) {
        ++shown;
        *flag = 1;
        status->MPI_SOURCE = atoi(given + 7);
        status->MPI_TAG = tag;
    }
    return code;
}
