/* Messages that MPIsec did not make: rank 0 puts them into MPI past MPIsec, as somebody on the network could.
 *
 * inject RECEIVER COUNT BYTES WAY      WAY: recv, any, mprobe, improbe, irecv, irecv-any, persistent,
 * sendrecv
 *
 * RECEIVER says how each receive ended, and how far its memory grew; then both exchange an ordinary message.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { TAG = 7, GO = 8, END = 9 };

typedef int send_procedure(const void*, int, MPI_Datatype, int, int, MPI_Comm);

static send_procedure* past_mpisec(void) {
    static const char* const names[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
        void* library = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY);
        if (library) return (send_procedure*)dlsym(library, "PMPI_Send");
    }
    exit(3);
}

static char room[64];

/* Receives what was forged, in the way that is asked for; rank 0 or any is the source. */
static int receive(const char* way) {
    const int source = strstr(way, "any") ? MPI_ANY_SOURCE : 0;
    int code, found = 0, number = 0, got;
    MPI_Request request;
    MPI_Message message;
    if (strcmp(way, "mprobe") == 0) {
        MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        return MPI_Mrecv(room, sizeof room, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
    if (strcmp(way, "improbe") == 0) {
        while (!found) MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(room, sizeof room, MPI_BYTE, &message, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (strncmp(way, "irecv", 5) == 0) {
        MPI_Irecv(room, sizeof room, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (strcmp(way, "persistent") == 0) {
        MPI_Recv_init(room, sizeof room, MPI_BYTE, source, TAG, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        return code;
    }
    if (strcmp(way, "sendrecv") == 0) { /* the other half goes to this rank itself */
        MPI_Comm_rank(MPI_COMM_WORLD, &number);
        MPI_Irecv(&got, 1, MPI_INT, number, GO, MPI_COMM_WORLD, &request);
        code = MPI_Sendrecv(&number, 1, MPI_INT, number, GO, room, sizeof room, MPI_BYTE, source, TAG,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return code;
    }
    return MPI_Recv(room, sizeof room, MPI_BYTE, source, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    int rank, number = 4711;
    if (argc < 5) return 2;
    int receiver = atoi(argv[1]), count = atoi(argv[2]), bytes = atoi(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        char* forged = memset(malloc((size_t)bytes + 1), 'F', (size_t)bytes);
        for (int i = 0; i < count; ++i) {
            past_mpisec()(forged, bytes, MPI_BYTE, receiver, TAG, MPI_COMM_WORLD);
            MPI_Recv(&number, 1, MPI_INT, receiver, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Send(&number, 1, MPI_INT, receiver, END, MPI_COMM_WORLD);
    } else if (rank == receiver) {
        int refused = 0, delivered = 0;
        struct rusage usage;
        for (int i = 0; i < count; ++i) {
            int code, length;
            char text[MPI_MAX_ERROR_STRING] = "";
            memset(room, 0, sizeof room);
            code = receive(argv[4]);
            getrusage(RUSAGE_SELF, &usage); /* before the next call, in which the MPI library may take in what
                                               is left of a message */
            if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
            refused += strstr(text, "MPIsec integrity error") != NULL;
            delivered += memchr(room, 'F', sizeof room) != NULL;
            MPI_Send(&number, 1, MPI_INT, 0, GO, MPI_COMM_WORLD);
        }
        number = 0;
        int code = MPI_Recv(&number, 1, MPI_INT, 0, END, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("refused %d delivered %d end %d %d memory %ld MB\n", refused, delivered, code, number,
               usage.ru_maxrss >> 10);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
