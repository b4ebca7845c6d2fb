/* M8: a datatype is the program's. Its operations are called with the handle that the program gave, also when
 * it has been freed meanwhile, and the copy functions of its attributes are called by MPI_Type_dup alone. */
#include "harness.h"
#include "rules.h"

static MPI_Datatype expected;
static int copies, others;

static int copy(MPI_Datatype type, int key, void* state, void* in, void* out, int* flag) {
    (void)type, (void)key, (void)state;
    *(void**)out = in;
    *flag = 1;
    ++copies;
    return MPI_SUCCESS;
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
    others += *type != expected;
    for (int i = 0; i < *count; ++i) ((int*)inout)[2 * i] += ((int*)in)[2 * i];
}

/* Every second integer. */
static void reduce(MPI_Datatype type, MPI_Op op, int freed) {
    int out[6] = {1, -1, 2, -1, 3, -1}, in[6] = {0, -7, 0, -7, 0, -7};
    MPI_Request request;
    OK(MPI_Iallreduce(out, in, 3, type, op, MPI_COMM_WORLD, &request));
    if (freed) OK(MPI_Type_free(&type));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3; ++i)
        CHECK(in[2 * i] == (i + 1) * size && (i == 2 || in[2 * i + 1] == -7), "the sum is %d, %d", in[2 * i],
              in[2 * i + 1]);
}

void rule_handles(void) {
    MPI_Datatype type;
    MPI_Op op;
    int key, in[6];
    OK(MPI_Type_create_keyval(copy, MPI_TYPE_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_set_attr(type, key, &key));
    OK(MPI_Op_create(add, 1, &op));
    expected = type;
    copies = others = 0;
    for (int other = 0; other < size; ++other) {
        MPI_Request request;
        OK(MPI_Irecv(in, 3, type, other, 8, MPI_COMM_WORLD, &request));
        OK(MPI_Sendrecv(in, 0, MPI_INT, other, 9, NULL, 0, MPI_INT, other, 9, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
        OK(MPI_Send((int[]){1, 2, 3}, 3, MPI_INT, other, 8, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    reduce(type, op, 0);
    reduce(type, op, 1);
    CHECK(copies == 0, "the copy function of a datatype's attribute was called %d times", copies);
    CHECK(others == 0, "the operation was called %d times with another datatype", others);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free_keyval(&key));
}
