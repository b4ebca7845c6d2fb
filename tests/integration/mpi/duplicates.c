/* Duplicates MPI_COMM_WORLD until the MPI library has no more contexts, uses some, and prints how many it
 * got. */
#include "harness.h"

enum { ENOUGH = 5000 };

int main(int argc, char** argv) {
    static MPI_Comm made[ENOUGH];
    int n = 0;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    while (n < ENOUGH && MPI_Comm_dup(MPI_COMM_WORLD, &made[n]) == MPI_SUCCESS) ++n;
    for (int i = 0; i < n; i += 53) {
        int mine = i, sum = -1;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, made[i]));
        CHECK(sum == i * size, "duplicate %d gave %d", i, sum);
    }
    for (int i = 0; i < n; ++i) OK(MPI_Comm_free(&made[i]));
    if (rank == 0) printf("%d duplicates\n", n);
    OK(MPI_Finalize());
    return 0;
}
