/* Attributes of communicators and datatypes, with copy and delete functions whose calls are told of. */
#include "program.h"

static int keys[MOST_KEYVALS], of_types[MOST_KEYVALS], made[MOST_KEYVALS];

/* Which copy function a key has: its extra state is 4 × its number + this. */
enum copies { COPY_NONE, COPY_SAME, COPY_CHANGED, COPY_REFUSED };

static int copy(void* state, void* in, void* out, int* flag) {
    int kind = (int)((intptr_t)state % 4);
    *flag = kind == COPY_CHANGED || kind == COPY_SAME;
    *(void**)out = (void*)((intptr_t)in + (kind == COPY_CHANGED));
    say_called("copy %d: %d, %d", (int)((intptr_t)state / 4), (int)(intptr_t)in, *flag);
    return MPI_SUCCESS;
}

static int copy_of_comm(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
    (void)comm, (void)key;
    return copy(state, in, out, flag);
}

static int copy_of_type(MPI_Datatype type, int key, void* state, void* in, void* out, int* flag) {
    (void)type, (void)key;
    return copy(state, in, out, flag);
}

static int delete_of_comm(MPI_Comm comm, int key, void* in, void* state) {
    (void)comm, (void)key;
    say_called("delete %d: %d", (int)((intptr_t)state / 4), (int)(intptr_t)in);
    return MPI_SUCCESS;
}

static int make_key(const struct step* step, int id) {
    int kind = (int)value(step, "copy", 0) % 4,
        deletes = (int)value(step, "deletes", 0); /* of a type: when is open */
    void* state = (void*)(intptr_t)(id * 4 + kind);
    if (made[id]) return 0;
    of_types[id] = is(step, "on", "type");
    if (of_types[id])
        OK(MPI_Type_create_keyval, (kind == COPY_NONE ? MPI_TYPE_NULL_COPY_FN : copy_of_type,
                                    MPI_TYPE_NULL_DELETE_FN, &keys[id], state));
    else
        OK(MPI_Comm_create_keyval, (kind == COPY_NONE ? MPI_COMM_NULL_COPY_FN : copy_of_comm,
                                    deletes ? delete_of_comm : MPI_COMM_NULL_DELETE_FN, &keys[id], state));
    return made[id] = 1;
}

/* Sets, gets or deletes an attribute of the communicator or the datatype that the step names. */
static int use_key(const struct step* step, int id) {
    struct comm* comm = of_types[id] ? NULL : comm_of(step, "comm");
    struct type* type = of_types[id] ? type_of(step, "type") : NULL;
    void *in = (void*)(intptr_t)value(step, "value", 0), *found = NULL;
    int flag = 0;
    if (!made[id] || (!comm && !type) || (type && type < types + PREDEFINED)) return 0;
    if (verb_is(step, "set_attribute")) {
        if (comm) comm->attributes = 1;
        if (comm) OK(MPI_Comm_set_attr, (comm->comm, keys[id], in));
        if (type) OK(MPI_Type_set_attr, (type->type, keys[id], in));
        return 1;
    }
    if (comm) OK(MPI_Comm_get_attr, (comm->comm, keys[id], &found, &flag));
    if (type) OK(MPI_Type_get_attr, (type->type, keys[id], &found, &flag));
    say(" flag=%d value=%d", flag, flag ? (int)(intptr_t)found : 0);
    if (!flag || !verb_is(step, "delete_attribute")) return 1;
    if (comm) OK(MPI_Comm_delete_attr, (comm->comm, keys[id]));
    if (type) OK(MPI_Type_delete_attr, (type->type, keys[id]));
    return 1;
}

static int free_key(int id) {
    if (!made[id]) return 0;
    if (of_types[id])
        OK(MPI_Type_free_keyval, (&keys[id]));
    else
        OK(MPI_Comm_free_keyval, (&keys[id]));
    made[id] = 0;
    return 1;
}

static int say_limits(void) {
    int* limit = NULL;
    int flag = 0;
    OK(MPI_Comm_get_attr, (MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag));
    say(" tags to %d", flag ? *limit : -1);
    return 1;
}

int attribute_step(const struct step* step) {
    int id = (int)(value(step, "key", 0) % MOST_KEYVALS), done;
    if (verb_is(step, "key"))
        done = make_key(step, id);
    else if (verb_is(step, "set_attribute") || verb_is(step, "get_attribute") ||
             verb_is(step, "delete_attribute"))
        done = use_key(step, id);
    else if (verb_is(step, "free_key"))
        done = free_key(id);
    else if (verb_is(step, "limits"))
        done = say_limits();
    else
        return 0;
    if (!done) say(" skipped");
    return 1;
}

/* Those of MPI_COMM_WORLD and MPI_COMM_SELF must not be left for the next program. */
void free_attributes(void) {
    for (int id = 0; id < MOST_KEYVALS; ++id) {
        void* found;
        int flag = 0;
        if (!made[id]) continue;
        for (int c = 0; c < 2 && !of_types[id]; ++c) {
            MPI_Comm comm = c ? MPI_COMM_SELF : MPI_COMM_WORLD;
            OK(MPI_Comm_get_attr, (comm, keys[id], &found, &flag));
            if (flag) OK(MPI_Comm_delete_attr, (comm, keys[id]));
        }
        free_key(id);
    }
}
