/* M8: the types that MPI_Type_create_f90_real and the like return are predefined, and their handles may differ between ranks: alone and
 * inside derived types, in messages, reductions and windows. */
#include "harness.h"
#include "rules.h"

static void in_messages(MPI_Datatype real) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    double out[8], in[8];
    MPI_Datatype every_other;
    OK(MPI_Type_vector(4, 1, 2, real, &every_other));
    OK(MPI_Type_commit(&every_other));
    for (int i = 0; i < 8; ++i) out[i] = 100 * rank + i, in[i] = -1;
    OK(MPI_Sendrecv(out, 1, every_other, next, 0, in, 1, every_other, last, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    for (int i = 0; i < 8; ++i) CHECK(in[i] == (i % 2 ? -1 : 100 * last + i), "number %d is %g", i, in[i]);
    OK(MPI_Type_free(&every_other));
    OK(MPI_Sendrecv(out, 8, real, next, 1, in, 8, real, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in[7] == 100 * last + 7, "the type was freed with one that was made of it");
}

static void in_reductions(MPI_Datatype real, MPI_Datatype integer, MPI_Datatype complex) {
    double one = rank + 1, sum = 0, pair[2] = {rank, 1}, pairs[2];
    int mine = rank, most = -1;
    OK(MPI_Allreduce(&one, &sum, 1, real, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&mine, &most, 1, integer, MPI_MAX, MPI_COMM_WORLD));
    OK(MPI_Allreduce(pair, pairs, 1, complex, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size * (size + 1) / 2 && most == size - 1 && pairs[1] == size, "%g, %d, %g", sum, most,
          pairs[1]);
}

static void in_windows(MPI_Datatype real) {
    const int next = (rank + 1) % size, last = (rank + size - 1) % size;
    double memory[3] = {10, 20, 30}, mine[2] = {rank, 1}, before = -1;
    MPI_Win win;
    OK(MPI_Win_create(memory, sizeof memory, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine, 1, real, next, 2, 1, real, win));
    OK(MPI_Accumulate(mine, 2, real, next, 0, 2, real, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memory[0] == 10 + last && memory[1] == 21 && memory[2] == last, "%g, %g, %g", memory[0], memory[1],
          memory[2]);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Fetch_and_op(mine, &before, real, next, 1, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    CHECK(before == 21 && memory[1] == 21 + last, "fetched %g, then %g", before, memory[1]);
    OK(MPI_Win_free(&win));
}

void rule_fortran_kinds(void) {
    MPI_Datatype real, integer, complex, other;
    if (rank % 2) OK(MPI_Type_create_f90_integer(4, &other));
    OK(MPI_Type_create_f90_real(15, 307, &real));
    OK(MPI_Type_create_f90_integer(9, &integer));
    OK(MPI_Type_create_f90_complex(15, 307, &complex));
    in_messages(real);
    in_reductions(real, integer, complex);
    in_windows(real);
}
