/* Each rank says its node, how many ranks share its memory, and what /dev/shm held before it left a file
 * there. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int foreign_files(const char* prefix, const char* host) {
    int count = 0;
    DIR* directory = opendir("/dev/shm");
    for (struct dirent* entry; (entry = readdir(directory)) != NULL;)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            count += strcmp(entry->d_name + strlen(prefix), host) != 0;
    closedir(directory);
    return count;
}

int main(int argc, char** argv) {
    int rank, sharing;
    char host[256], path[600], processor[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    gethostname(host, sizeof host);
    MPI_Get_processor_name(processor, &(int){0});
    snprintf(path, sizeof path, "/dev/shm/whereami-%s", host);
    fclose(fopen(path, "w"));
    MPI_Barrier(MPI_COMM_WORLD);
    int foreign = foreign_files("whereami-", host);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &sharing);
    printf("rank %d host %s processor %s sharing %d foreign %d\n", rank, host, processor, sharing, foreign);
    MPI_Barrier(MPI_COMM_WORLD);
    unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000); /* MPICH 4.0 hangs in Finalize without */
    MPI_Finalize();
    return 0;
}
