/* M11: MPI_Comm_split_type beyond nodes: MPICH's neighbourhoods, hints that ranks give differently or that
 * nobody knows, and the part that the hardware makes of several nodes. */
#include "harness.h"
#include "rules.h"

/* What the last rank gives may differ; null: nothing. Returns the size of this rank's part, 0: none. */
static int part(int type, const char* key, const char* value, const char* of_last, int order) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm;
    int ranks = 0, me = -1, sum = -1;
    const char* mine = rank == size - 1 ? of_last : value;
    if (mine) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, key, mine));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, order * rank, info, &comm));
    if (info != MPI_INFO_NULL) OK(MPI_Info_free(&info));
    if (comm == MPI_COMM_NULL) return 0;
    OK(MPI_Comm_size(comm, &ranks));
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == ranks * (ranks - 1) / 2, "a sum over %d ranks gave %d", ranks, sum);
    int first = rank, up = 0;
    OK(MPI_Bcast(&first, 1, MPI_INT, 0, comm));
    up = me == 0 || (order < 0 ? first > rank : first < rank);
    CHECK(up, "rank %d of a part is not in the order of the keys", me);
    OK(MPI_Comm_free(&comm));
    return ranks;
}

/* Of two groups, the even and the odd ranks: who of both is on this node. (Where a node has ranks of one group only, Open MPI hangs.) */
static void part_of_two_groups(int type) {
    if (!sealed && size < 4) return;
    MPI_Comm half, inter, comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter));
    int near[2] = {0, 0}, sum = 0, expected = 0, local = 0, remote = 0;
    for (int i = 0; i < size; ++i) near[i % 2] += is_local(i);
    OK(MPI_Comm_split_type(inter, type, -rank, MPI_INFO_NULL, &comm));
    CHECK((comm == MPI_COMM_NULL) == (near[1 - rank % 2] == 0), "%d and %d ranks are here", near[0], near[1]);
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_size(comm, &local));
        OK(MPI_Comm_remote_size(comm, &remote));
        CHECK(local == near[rank % 2] && remote == near[1 - rank % 2], "%d and %d ranks are in it", local,
              remote);
        for (int i = 0; i < size; ++i) expected += is_local(i) && i % 2 != rank % 2 ? i : 0;
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK(sum == expected, "the other side's ranks add up to %d, not %d", sum, expected);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

void rule_split_types(void) {
    int node_peers = 0;
    for (int i = 0; i < size; ++i) node_peers += is_local(i);
    CHECK(part(MPI_COMM_TYPE_SHARED, "tooth", "a", "b", 1) == node_peers, "not as many as on this node");
    if (library_is("Intel")) return; /* its numbers of the types are others */
    if (size > 1) part_of_two_groups(MPI_COMM_TYPE_SHARED);
#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
    const int near = MPIX_COMM_TYPE_NEIGHBORHOOD;
    const char* directory = "nbhd_common_dirname";
    CHECK(part(near, directory, ".", ".", -1) == size, "not all share the working directory");
    CHECK(part(near, directory, "/dev/shm", "/dev/shm", -1) == node_peers, "/dev/shm is a node's own");
    CHECK(part(near, directory, "__one__", "__other__", 1) == 0, "a part of ranks whose hints differ");
    CHECK(part(near, directory, ".", NULL, 1) == 0, "a part though a rank gave no hint");
    CHECK(part(near, "tooth", "a", "a", 1) == 0, "a part for a hint that nobody knows");
#endif
#if defined(MPI_COMM_TYPE_HW_UNGUIDED) && defined(MPICH_NUMVERSION)
    CHECK(part(MPI_COMM_TYPE_HW_UNGUIDED, "tooth", NULL, NULL, 1) == node_peers,
          "the node is the largest part");
    if (size > 1) part_of_two_groups(MPI_COMM_TYPE_HW_UNGUIDED);
#endif
}
