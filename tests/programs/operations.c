/* Operations of reductions: MPI's own, and functions of the program on any datatype, commutative or not. All
 * are associative, and exact on the numbers that buffers hold, so that results do not depend on the order in
 * which a library applies them. */
#include "program.h"

enum user { SUM, LEFT, RIGHT, AFFINE, USER_KINDS };
static const char* const names[USER_KINDS] = {"sum", "left", "right", "affine"};
static MPI_Op operations[MOST_OPS];
static int made[MOST_OPS];
enum { FIRST_USER = 10 };

static const struct type* find(MPI_Datatype handle) {
    const struct type* type = type_with(handle);
    if (!type) give_up("an operation is called with a datatype that the program does not have");
    return type;
}

/* Units of four bytes, wherever they lie: whatever numbers they are, sums of unsigned ones wrap the same
 * everywhere. */
static void apply(enum user kind, unsigned char* left, unsigned char* result, long count,
                  const struct type* type) {
    for (long i = 0; i < count; ++i)
        for (int u = 0; u < type->units; ++u) {
            MPI_Aint at = i * type->extent + type->offsets[u];
            if (kind == LEFT) memcpy(result + at, left + at, (size_t)type->unit_size);
            if (kind == SUM && type->unit_size % 4 == 0)
                for (int w = 0; w < type->unit_size; w += 4) {
                    uint32_t a, b;
                    memcpy(&a, left + at + w, 4);
                    memcpy(&b, result + at + w, 4);
                    b += a;
                    memcpy(result + at + w, &b, 4);
                }
            if (kind == AFFINE && type->unit_size == 8) { /* x → a x + b, one after the other */
                uint32_t f[2], g[2];
                memcpy(f, left + at, 8);
                memcpy(g, result + at, 8);
                uint32_t both[2] = {f[0] * g[0], f[0] * g[1] + f[1]};
                memcpy(result + at, both, 8);
            }
        }
}

#define FUNCTIONS(name, kind)                                                                  \
    static void name(void* left, void* result, int* count, MPI_Datatype* type) {               \
        apply(kind, left, result, *count, find(*type));                                        \
    }                                                                                          \
    static void name##_large(void* left, void* result, MPI_Count* count, MPI_Datatype* type) { \
        apply(kind, left, result, (long)*count, find(*type));                                  \
    }
FUNCTIONS(add, SUM)
FUNCTIONS(take_left, LEFT)
FUNCTIONS(take_right, RIGHT)
FUNCTIONS(compose, AFFINE)
static MPI_User_function* const functions[USER_KINDS] = {add, take_left, take_right, compose};
typedef void large_function(void*, void*, MPI_Count*, MPI_Datatype*);
static large_function* const large_functions[USER_KINDS] = {add_large, take_left_large, take_right_large,
                                                            compose_large};

/* The step's operation, when it is one of the type's. */
MPI_Op op_of(const struct step* step, const struct type* type) {
    const MPI_Op known[FIRST_USER] = {MPI_SUM,  MPI_MAX,  MPI_MIN,    MPI_BXOR,   MPI_BOR,
                                      MPI_LAND, MPI_PROD, MPI_MAXLOC, MPI_MINLOC, MPI_OP_NULL};
    long id = value(step, "op", 0);
    if (id < 0 || id >= MOST_OPS) give_up("line %d: op=%ld", step->number, id);
    if (id >= FIRST_USER) return made[id] ? operations[id] : MPI_OP_NULL;
    int class = type->class, integer = class == 1 || class == 3 || class == 4 || class == 7,
        real = class == 2 || class == 5;
    int fits = id <= 2   ? integer || real
               : id <= 5 ? integer
               : id == 6 ? class == 7
                         : class == 8 || class == 9;
    if ((id == 3 || id == 4) && class == 0) fits = 1;
    return fits && type < types + PREDEFINED ? known[id] : MPI_OP_NULL;
}

static void make_operation(const struct step* step) {
    long id = value(step, "op", 0);
    for (int kind = 0; kind < USER_KINDS; ++kind) {
        if (!is(step, "kind", names[kind]) || id < FIRST_USER || id >= MOST_OPS || made[id]) continue;
        int commutes = kind == SUM, said = -1;
#ifdef HAVE_COUNT_VARIANTS
        if (value(step, "large", 0))
            OK(MPI_Op_create_c, (large_functions[kind], commutes, &operations[id]));
        else
#endif
            OK(MPI_Op_create, (functions[kind], commutes, &operations[id]));
        OK(MPI_Op_commutative, (operations[id], &said));
        say(" commutes=%d", said);
        made[id] = 1;
        return;
    }
    (void)large_functions;
    say(" skipped");
}

int operation_step(const struct step* step) {
    long id = value(step, "op", 0);
    if (verb_is(step, "op")) {
        make_operation(step);
    } else if (verb_is(step, "free_op")) {
        if (id >= FIRST_USER && id < MOST_OPS && made[id]) {
            OK(MPI_Op_free, (&operations[id]));
            made[id] = 0;
        } else {
            say(" skipped");
        }
    } else {
        return 0;
    }
    return 1;
}

void free_operations(void) {
    for (int i = FIRST_USER; i < MOST_OPS; ++i)
        if (made[i]) OK(MPI_Op_free, (&operations[i]));
    memset(made, 0, sizeof made);
}
