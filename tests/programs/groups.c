/* Groups: their algebra, and what they say of each other. */
#include "program.h"

static void say_group(const char* what, MPI_Group group, MPI_Group whole) {
    int size = -1, rank = -1, result = -1, own[MOST_RANKS], there[MOST_RANKS];
    OK(MPI_Group_size, (group, &size));
    OK(MPI_Group_rank, (group, &rank));
    OK(MPI_Group_compare, (group, whole, &result));
    for (int i = 0; i < size; ++i) own[i] = i;
    say(" %s=%d/%d/%s:", what, rank, size,
        result == MPI_IDENT     ? "ident"
        : result == MPI_SIMILAR ? "similar"
                                : "unequal");
    if (OK(MPI_Group_translate_ranks, (group, size, own, whole, there)) == MPI_SUCCESS)
        for (int i = 0; i < size; ++i) say("%d,", there[i]);
}

int group_step(const struct step* step) {
    if (!verb_is(step, "group")) return 0;
    struct comm *comm = comm_of(step, "comm"), *other = comm_of(step, "with");
    if (!comm || !other || comm->group_is_wrong || other->group_is_wrong) {
        say(" skipped");
        return 1;
    }
    MPI_Group world, one, two, made[7];
    int first = 0, last = comm->size - 1, range[1][3] = {{last, 0, -(int)(1 + value(step, "stride", 0) % 3)}};
    OK(MPI_Comm_group, (MPI_COMM_WORLD, &world));
    OK(MPI_Comm_group, (comm->comm, &one));
    OK(MPI_Comm_group, (other->comm, &two));
    OK(MPI_Group_union, (one, two, &made[0]));
    OK(MPI_Group_intersection, (one, two, &made[1]));
    OK(MPI_Group_difference, (one, two, &made[2]));
    OK(MPI_Group_incl, (one, 1, &last, &made[3]));
    OK(MPI_Group_excl, (one, 1, &first, &made[4]));
    OK(MPI_Group_range_incl, (one, 1, range, &made[5]));
    OK(MPI_Group_range_excl, (one, 1, range, &made[6]));
    static const char* const names[7] = {"union", "both", "only", "last", "butfirst", "range", "butrange"};
    for (int i = 0; i < 7; ++i) {
        say_group(names[i], made[i], world);
        if (made[i] != MPI_GROUP_EMPTY) OK(MPI_Group_free, (&made[i]));
    }
    OK(MPI_Group_free, (&one));
    OK(MPI_Group_free, (&two));
    OK(MPI_Group_free, (&world));
    return 1;
}
