// What a receive of long doubles with gaps writes: the bytes of the type map, of which a long double's
// padding may be some; but never what another message left in memory.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { many = 64 };

int main(int argc, char** argv) {
    int rank;
    unsigned char secret[many * 2 * sizeof(long double)];
    long double values[many * 2];
    MPI_Datatype pairs, apart;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_vector(many, 1, 2, MPI_LONG_DOUBLE, &apart);
    MPI_Type_vector(many / 2, 16, 32, MPI_BYTE, &pairs);
    MPI_Type_commit(&apart);
    MPI_Type_commit(&pairs);
    memset(secret, 0xC3, sizeof secret);
    memset(values, 0x11, sizeof values);
    for (int round = 0; round < 4; ++round) {
        // Other messages leave their bytes in MPIsec's buffers.
        if (rank == 0) MPI_Send(secret, many * (int)sizeof(long double), MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        if (rank == 1)
            MPI_Recv(secret, many * (int)sizeof(long double), MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (rank == 0) MPI_Send(secret, 1, pairs, 1, 1, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(secret, 1, pairs, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memset(values, rank == 0 ? 0x11 : 0x77, sizeof values);
        if (rank == 0) {
            for (int i = 0; i < many; ++i) values[2 * i] = i + 0.5L;
            for (int i = 0; i < many; ++i) memset((char*)(values + 2 * i) + 10, 0x11, 6);
            MPI_Send(values, 1, apart, 1, 2, MPI_COMM_WORLD);
        }
        if (rank == 1) MPI_Recv(values, 1, apart, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        int wrong = 0, stale = 0, kept = 0, sent = 0, zero = 0;
        for (int i = 0; i < many; ++i) {
            const unsigned char* bytes = (const unsigned char*)(values + 2 * i);
            wrong += values[2 * i] != i + 0.5L;
            for (int b = 10; b < 16; ++b) {
                int* which = bytes[b] == 0x77   ? &kept
                             : bytes[b] == 0x11 ? &sent
                             : bytes[b] == 0    ? &zero
                                                : &stale;
                ++*which;
            }
            for (int b = 16; b < 32; ++b) wrong += bytes[b] != 0x77;
        }
        printf("wrong %d padding kept %d sent %d zero %d stale %d\n", wrong, kept, sent, zero, stale);
    }
    MPI_Finalize();
    return 0;
}
