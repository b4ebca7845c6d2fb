/* The network as an attacker of the MPI library's own messages: a library preloaded under MPIsec, which finds
 * its PMPI_ procedures with dlsym(RTLD_NEXT). What constructors of communicators exchange (colours, keys,
 * `high`, groups) travels in clear; an attacker who changes it alike for all ranks makes all of them believe
 * the same. Here the constructor that liar_lie() names, on its nth call from then on, gives a communicator in
 * which the first two ranks have changed places, or one with another topology.
 *
 * With MPISEC_LAB_LIE=shared in the environment MPI_Comm_split_type puts all ranks into one part, as if two
 * colours had been changed on the wire. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI /* this library is also in processes without MPI (mpisec exec) */
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_comm_null
#endif

static const char* lied;
static int countdown, about_topology;

/* `procedure`: without MPI_; null for the truth. */
void liar_lie(const char* procedure, int nth, int topology) {
    lied = procedure, countdown = nth, about_topology = topology;
}

static int lies(const char* name) {
    return lied && strcmp(lied, name) == 0 && --countdown == 0;
}

static void* real(const char* name) {
    char full[64];
    snprintf(full, sizeof full, "PMPI_%s", name);
    void* found = dlsym(RTLD_NEXT, full);
    if (!found) {
        fprintf(stderr, "liar: no %s below\n", full);
        exit(3);
    }
    return found;
}
#define REAL(name) ((__typeof__(&MPI_##name))real(#name))

static void swap(MPI_Comm* made) {
    int rank;
    MPI_Comm other;
    if (*made == MPI_COMM_NULL) return;
    REAL(Comm_rank)(*made, &rank);
    if (REAL(Comm_split)(*made, 0, rank == 0 ? 1 : rank == 1 ? 0 : rank, &other) == MPI_SUCCESS)
        *made = other;
}

#define SWAPS(name, parameters, arguments)                              \
    int PMPI_##name parameters {                                        \
        int lie = lies(#name);                                          \
        int code = REAL(name) arguments;                                \
        if (code == MPI_SUCCESS && lie) swap(made);                     \
        return code;                                                    \
    }                                                                   \
    int MPI_##name parameters {                                         \
        return PMPI_##name arguments; /* of a program without MPIsec */ \
    }
SWAPS(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
SWAPS(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* made), (comm, info, made))
SWAPS(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made))
SWAPS(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
SWAPS(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peer, int remote, int tag, MPI_Comm* made),
      (comm, leader, peer, remote, tag, made))
SWAPS(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm* made), (comm, high, made))

/* Another group is made at once: MPICH may hang when it divides an inter-communicator from MPI_Comm_create.
 */
int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
    int lie = lies("Comm_create"), n, order[64];
    MPI_Group other;
    if (!lie) return REAL(Comm_create)(comm, group, made);
    REAL(Group_size)(group, &n);
    if (n > 64) exit(3);
    for (int i = 0; i < n; ++i) order[i] = i;
    if (n > 1) order[0] = 1, order[1] = 0;
    REAL(Group_incl)(group, n, order, &other);
    int code = REAL(Comm_create)(comm, other, made);
    REAL(Group_free)(&other);
    return code;
}
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
    return PMPI_Comm_create(comm, group, made);
}

static int done_already(MPI_Comm comm, int code, MPI_Comm* made, MPI_Request* request) {
    if (code != MPI_SUCCESS) return code;
    swap(made);
    return REAL(Irecv)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, request);
}
int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
    if (!lies("Comm_idup")) return REAL(Comm_idup)(comm, made, request);
    return done_already(comm, REAL(Comm_dup)(comm, made), made, request);
}
int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made, MPI_Request* request) {
    if (!lies("Comm_idup_with_info")) return REAL(Comm_idup_with_info)(comm, info, made, request);
    return done_already(comm, REAL(Comm_dup_with_info)(comm, info, made), made, request);
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
    const char* named = getenv("MPISEC_LAB_LIE");
    if (named && strcmp(named, "shared") == 0) return REAL(Comm_split)(comm, 0, key, made);
    return REAL(Comm_split_type)(comm, type, key, info, made);
}

/* --- topologies: the first number of each is another one --- */

static int copy[64];
static const int* other_first(const int* values, int n, int below) {
    if (n > 64) exit(3);
    memcpy(copy, values, (size_t)n * sizeof *values);
    if (n > 0) copy[0] = (copy[0] + 1) % below;
    return copy;
}

int PMPI_Cart_create(MPI_Comm comm, int n, const int* dims, const int* periods, int reorder, MPI_Comm* made) {
    int lie = lies("Cart_create");
    int code = REAL(Cart_create)(comm, n, dims, lie && about_topology ? other_first(periods, n, 2) : periods,
                                 reorder, made);
    if (code == MPI_SUCCESS && lie && !about_topology) swap(made);
    return code;
}

int PMPI_Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* made) {
    int lie = lies("Cart_sub");
    int code = REAL(Cart_sub)(comm, remain, made);
    if (code != MPI_SUCCESS || !lie) return code;
    if (!about_topology) return swap(made), code;
    int n, dims[8], periods[8], coordinates[8];
    MPI_Comm other;
    REAL(Cartdim_get)(*made, &n);
    REAL(Cart_get)(*made, n, dims, periods, coordinates);
    code = REAL(Cart_create)(*made, n, dims, other_first(periods, n, 2), 0, &other);
    *made = other;
    return code;
}

int MPI_Cart_sub(MPI_Comm comm, const int* remain, MPI_Comm* made) {
    return PMPI_Cart_sub(comm, remain, made);
}

int PMPI_Graph_create(MPI_Comm comm, int n, const int* index, const int* edges, int reorder, MPI_Comm* made) {
    int lie = lies("Graph_create");
    int code = REAL(Graph_create)(
        comm, n, index, lie && about_topology ? other_first(edges, index[n - 1], n) : edges, reorder, made);
    if (code == MPI_SUCCESS && lie && !about_topology) swap(made);
    return code;
}

int PMPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int* sources, const int* source_weights,
                                    int out, const int* destinations, const int* weights, MPI_Info info,
                                    int reorder, MPI_Comm* made) {
    int lie = lies("Dist_graph_create_adjacent"), size = 1;
    REAL(Comm_size)(comm, &size);
    int code = REAL(Dist_graph_create_adjacent)(
        comm, in, lie && about_topology ? other_first(sources, in, size) : sources, source_weights, out,
        destinations, weights, info, reorder, made);
    if (code == MPI_SUCCESS && lie && !about_topology) swap(made);
    return code;
}
