/* What a program asserts of its own calls on a communicator (MPI 4.1, section 7.4.4), by each way to give a communicator hints. On each
 * communicator messages are sent and received as the assertions allow. Says "RANK WAY KEY=VALUE" of every assertion that
 * MPI_Comm_get_info returns, and "RANK WAY fine". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) ((call) == MPI_SUCCESS ? (void)0 : MPI_Abort(MPI_COMM_WORLD, __LINE__))

enum { MESSAGES = 8, LONGEST = 200000 };
static const char* const assertions[] = {"mpi_assert_allow_overtaking", "mpi_assert_no_any_source",
                                         "mpi_assert_no_any_tag", "mpi_assert_exact_length"};
enum { ASSERTIONS = sizeof assertions / sizeof *assertions };
static int world_rank;

static void use(const char* way, MPI_Comm comm) {
    static char out[MESSAGES][LONGEST], in[MESSAGES][LONGEST];
    MPI_Request requests[2 * MESSAGES];
    MPI_Info info;
    int rank, size, found;
    char value[MPI_MAX_INFO_VAL + 1];
    OK(MPI_Comm_get_info(comm, &info));
    for (int i = 0; i < ASSERTIONS; ++i) {
        OK(MPI_Info_get(info, assertions[i], MPI_MAX_INFO_VAL, value, &found));
        if (found) printf("%d %s %s=%s\n", world_rank, way, assertions[i], value);
    }
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (int i = 0; i < MESSAGES; ++i) {
        const int n = i % 2 ? LONGEST : 100;
        memset(out[i], 'a' + i + rank, (size_t)n);
        OK(MPI_Irecv(in[i], n, MPI_CHAR, (rank + size - 1) % size, i, comm, &requests[2 * i]));
        OK(MPI_Isend(out[i], n, MPI_CHAR, (rank + 1) % size, i, comm, &requests[2 * i + 1]));
    }
    OK(MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; ++i)
        if (in[i][0] != 'a' + i + (rank + size - 1) % size || in[i][99] != in[i][0])
            MPI_Abort(MPI_COMM_WORLD, 1);
    printf("%d %s fine\n", world_rank, way);
    fflush(stdout);
}

static void use_and_free(const char* way, MPI_Comm comm) {
    use(way, comm);
    OK(MPI_Comm_free(&comm));
}

#if MPI_VERSION >= 4
/* What the library finds for MPI_COMM_TYPE_HW_UNGUIDED on a node it says in the hints. */
static void say_hardware(const char* what, MPI_Info info) {
    MPI_Comm node, part;
    char value[MPI_MAX_INFO_VAL + 1];
    int found;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_split_type(node, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &part));
    OK(MPI_Info_get(info, "mpi_hw_resource_type", MPI_MAX_INFO_VAL, value, &found));
    if (found) printf("%d %s %s\n", world_rank, what, value);
    if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&node));
}
#endif

int main(int argc, char** argv) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Info info;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Info_create(&info));
    for (int i = 0; i < ASSERTIONS; ++i) OK(MPI_Info_set(info, assertions[i], "true"));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_info(comm, info));
    use_and_free("set_info", comm);
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    use_and_free("dup_with_info", comm);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, info, &comm));
    use_and_free("split_type", comm);
#if MPI_VERSION >= 4
    MPI_Info none;
    OK(MPI_Info_create(&none));
    say_hardware("found", none);
    say_hardware("found-with-assertions", info);
    OK(MPI_Info_free(&none));
#endif
    const int one = 1, to = (world_rank + 1) % 4, from = (world_rank + 3) % 4;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, info,
                                      0, &comm));
    use_and_free("dist_graph_create_adjacent", comm);
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &world_rank, &one, &to, MPI_UNWEIGHTED, info, 0, &comm));
    use_and_free("dist_graph_create", comm);
#if MPI_VERSION >= 4
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    use_and_free("idup_with_info", comm);
    MPI_Session session;
    MPI_Group group;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "assertions", info, MPI_ERRORS_RETURN, &comm));
    use_and_free("create_from_group", comm);
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
#endif
    (void)request;
    char value[MPI_MAX_INFO_VAL + 1];
    int found;
    for (int i = 0; i < ASSERTIONS; ++i) { /* the program's own hints are as they were */
        OK(MPI_Info_get(info, assertions[i], MPI_MAX_INFO_VAL, value, &found));
        if (!found || strcmp(value, "true") != 0) MPI_Abort(MPI_COMM_WORLD, 2);
    }
    OK(MPI_Info_free(&info));
    return MPI_Finalize();
}
