// One element of a datatype with gaps that has more than 2 GiB of data: from little memory, which the type
// names again and again, to all of it. Rank 1 checks what came and that the gaps are as before.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { block = 1 << 20, blocks = 2050, gap = 64 };

int main(int argc, char** argv) {
    int rank, wrong = 0;
    MPI_Datatype overlaid, spread;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_hvector(blocks, block, 0, MPI_BYTE, &overlaid);
    MPI_Type_create_hvector(blocks, block, block + gap, MPI_BYTE, &spread);
    MPI_Type_commit(&overlaid);
    MPI_Type_commit(&spread);
    if (rank == 0) {
        static unsigned char data[block];
        for (int i = 0; i < block; ++i) data[i] = (unsigned char)(i * 7 + i / 251);
        MPI_Send(data, 1, overlaid, 1, 1, MPI_COMM_WORLD);
    } else {
        const size_t all = (size_t)blocks * (block + gap);
        unsigned char* to = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int b = 0; b < blocks; ++b) memset(to + (size_t)b * (block + gap) + block, 0x5A, gap);
        MPI_Status status;
        MPI_Count bytes = 0;
        MPI_Recv(to, 1, spread, 0, 1, MPI_COMM_WORLD, &status);
        MPI_Get_elements_x(&status, spread, &bytes);
        wrong += bytes != (MPI_Count)blocks * block;
        for (int b = 0; b < blocks; ++b) {
            const unsigned char* here = to + (size_t)b * (block + gap);
            for (int i = 0; i < block; i += 977) wrong += here[i] != (unsigned char)(i * 7 + i / 251);
            for (int i = 0; i < gap; ++i) wrong += here[block + i] != 0x5A;
        }
        printf("wrong: %d\n", wrong);
    }
    MPI_Type_free(&overlaid);
    MPI_Type_free(&spread);
    MPI_Finalize();
    return 0;
}
