/* What a program's own operation is given as datatype is the handle that the reduction was called with, also
   when the type has been freed meanwhile (MPI standard section 6.9.5); and nobody copies the type's
   attributes. */
#include <mpi.h>
#include <stdio.h>

static MPI_Datatype expected;
static int calls, wrong, copies;

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    const double* from = in;
    double* to = inout;
    calls++;
    wrong += *type != expected;
    for (int i = 0; i < 2 * *count; i++) to[i] += from[i];
}

static int copied(MPI_Datatype type, int key, void* extra, void* in, void* out, int* flag) {
    (void)type, (void)key, (void)extra, (void)in, (void)out;
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

static MPI_Datatype pair(int key) {
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, &copies);
    expected = type;
    return type;
}

int main(int argc, char** argv) {
    int rank, size, key, bad = 0;
    MPI_Op op;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op_create(add, 1, &op);
    MPI_Type_create_keyval(copied, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    const double sum = size * (size - 1) / 2.0;

    double mine[2] = {rank, 10 * rank}, got[2] = {-1, -1};
    MPI_Datatype type = pair(key);
    MPI_Allreduce(mine, got, 1, type, op, MPI_COMM_WORLD);
    bad += got[0] != sum || got[1] != 10 * sum;
    MPI_Scan(mine, got, 1, type, op, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    bad += type != MPI_DATATYPE_NULL;

    type = pair(key);
    got[0] = got[1] = -1;
    MPI_Iallreduce(mine, got, 1, type, op, MPI_COMM_WORLD, &request);
    MPI_Type_free(&type);
    bad += type != MPI_DATATYPE_NULL;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bad += got[0] != sum || got[1] != 10 * sum;

    printf("rank %d: %s, wrong type %d times, attributes copied %d times, %d wrong values\n", rank,
           calls ? "called" : "not called", wrong, copies, bad);
    MPI_Type_free_keyval(&key);
    MPI_Op_free(&op);
    MPI_Finalize();
    return wrong || copies || bad;
}
