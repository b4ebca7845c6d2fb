/* What is under way: completed in every manner that MPI has, and told of. */
#include <sched.h>
#include <unistd.h>

#include "program.h"

static struct slot slots[MOST_SLOTS];

struct slot* slot_for(const struct step* step) {
    long id = value(step, "id", 0);
    if (id < 0 || id >= MOST_SLOTS) give_up("line %d: id=%ld", step->number, id);
    struct slot* slot = id ? &slots[id] : get_memory(sizeof *slot);
    if (slot->step) return NULL;
    slot->step = step;
    slot->active = 1;
    return slot;
}

struct pending* add_pending(struct slot* slot) {
    slot->list = realloc(slot->list, (size_t)(slot->count + 1) * sizeof *slot->list);
    if (!slot->list) give_up("no memory for requests");
    struct pending* it = &slot->list[slot->count++];
    memset(it, 0, sizeof *it);
    it->request = MPI_REQUEST_NULL;
    return it;
}

void* slot_memory(struct slot* slot, size_t bytes) {
    if (slot->memories == 16) give_up("line %d: too many arrays", slot->step->number);
    return slot->memory[slot->memories++] = get_memory(bytes);
}

static void forget(struct slot* slot) {
    for (int i = 0; i < slot->count; ++i) {
        if (slot->persistent && slot->list[i].request != MPI_REQUEST_NULL)
            OK(MPI_Request_free, (&slot->list[i].request));
        free_buffer(&slot->list[i].in);
        free_buffer(&slot->list[i].out);
    }
    for (int i = 0; i < slot->memories; ++i) free(slot->memory[i]);
    free(slot->list);
    int own = slot < slots || slot >= slots + MOST_SLOTS;
    memset(slot, 0, sizeof *slot);
    if (own) free(slot);
}

/* ---- completing */
struct set {
    int count;
    MPI_Request* requests;
    MPI_Status* statuses;
    char* done;
};

static void wait_each(struct set* set, int backwards) {
    for (int i = 0; i < set->count; ++i) {
        int k = backwards ? set->count - 1 - i : i;
        OK(MPI_Wait, (&set->requests[k], &set->statuses[k]));
    }
}

static void test_each(struct set* set) {
    for (int left = set->count; left;)
        for (int i = 0; i < set->count; ++i) {
            int flag = 0;
            if (set->done[i]) continue;
            if (OK(MPI_Test, (&set->requests[i], &flag, &set->statuses[i])) != MPI_SUCCESS) flag = 1;
            if (flag) set->done[i] = 1, --left;
            if (!flag) sched_yield();
        }
}

static void ask_then_wait(struct set* set) {
    for (int i = 0; i < set->count; ++i) {
        int flag = 0;
        while (!flag) {
            if (OK(MPI_Request_get_status, (set->requests[i], &flag, &set->statuses[i])) != MPI_SUCCESS)
                break;
            if (!flag) sched_yield();
        }
        MPI_Status known =
            set->statuses[i]; /* MPICH 5: MPI_Wait then knows nothing of a persistent request's message */
        OK(MPI_Wait, (&set->requests[i], &set->statuses[i]));
        if (flag) set->statuses[i] = known;
    }
}

static void one_by_one(struct set* set, int test) {
    for (;;) {
        int index = MPI_UNDEFINED, flag = 1;
        MPI_Status status;
        if (test)
            OK(MPI_Testany, (set->count, set->requests, &index, &flag, &status));
        else
            OK(MPI_Waitany, (set->count, set->requests, &index, &status));
        if (!flag) sched_yield();
        if (flag && index == MPI_UNDEFINED) return;
        if (flag) set->statuses[index] = status;
    }
}

static void some_by_some(struct set* set, int test) {
    int* indices = get_memory((size_t)set->count * sizeof *indices);
    MPI_Status* some = get_memory((size_t)set->count * sizeof *some);
    for (;;) {
        int n = MPI_UNDEFINED;
        if (test)
            OK(MPI_Testsome, (set->count, set->requests, &n, indices, some));
        else
            OK(MPI_Waitsome, (set->count, set->requests, &n, indices, some));
        if (n == MPI_UNDEFINED) break;
        if (n == 0) sched_yield();
        for (int i = 0; i < n; ++i) set->statuses[indices[i]] = some[i];
    }
    free(indices), free(some);
}

static void test_all(struct set* set) {
    for (int flag = 0; !flag;) {
        if (OK(MPI_Testall, (set->count, set->requests, &flag, set->statuses)) != MPI_SUCCESS) return;
        if (!flag) sched_yield();
    }
}

static void complete_set(struct set* set, const char* how) {
    if (strcmp(how, "wait") == 0)
        wait_each(set, 0);
    else if (strcmp(how, "wait_back") == 0)
        wait_each(set, 1);
    else if (strcmp(how, "test") == 0)
        test_each(set);
    else if (strcmp(how, "status") == 0)
        ask_then_wait(set);
    else if (strcmp(how, "waitany") == 0 || strcmp(how, "testany") == 0)
        one_by_one(set, how[0] == 't');
    else if (strcmp(how, "waitsome") == 0 || strcmp(how, "testsome") == 0)
        some_by_some(set, how[0] == 't');
    else if (strcmp(how, "testall") == 0)
        test_all(set);
    else
        OK(MPI_Waitall, (set->count, set->requests, set->statuses));
}

int requests_on(long comm) {
    for (int i = 1; i < MOST_SLOTS; ++i)
        if (slots[i].step && value(slots[i].step, "comm", 0) == comm) return 1;
    return 0;
}

static void complete(struct slot** list, int n, const char* how) {
    struct set set = {0};
    for (int s = 0; s < n; ++s) set.count += list[s]->count;
    set.requests = get_memory((size_t)set.count * sizeof *set.requests);
    set.statuses = get_memory((size_t)set.count * sizeof *set.statuses);
    set.done = get_memory((size_t)set.count);
    int k = 0;
    for (int s = 0; s < n; ++s)
        for (int i = 0; i < list[s]->count; ++i)
            if (list[s]->list[i].request != MPI_REQUEST_NULL) set.requests[k++] = list[s]->list[i].request;
    set.count = k;
    /* MPICH leaves the status of a persistent collective as it was, and what completes several takes it for
     * an error. */
    for (int s = 0; s < n; ++s)
        if (ON_MPICH && list[s]->persistent && verb_is(list[s]->step, "coll")) how = "wait";
    if (k) complete_set(&set, how);
    k = 0;
    for (int s = 0; s < n; ++s)
        for (int i = 0; i < list[s]->count; ++i)
            if (list[s]->list[i].request != MPI_REQUEST_NULL) {
                list[s]->list[i].request = set.requests[k];
                list[s]->list[i].status = set.statuses[k++];
            }
    free(set.requests), free(set.statuses), free(set.done);
}

/* ---- telling */
static MPI_Datatype base_of(const struct buffer* buffer) {
    return buffer->layout.class < STRUCTURES ? types[buffer->layout.class].type : MPI_BYTE;
}

void say_status(const MPI_Status* status, const struct buffer* buffer, int hide) {
    int count = -1, elements = -1, bytes = -1;
    if (hide) return;
    OK(MPI_Get_count, (status, base_of(buffer), &count));
    OK(MPI_Get_count, (status, MPI_BYTE, &bytes));
    OK(MPI_Get_elements, (status, base_of(buffer), &elements));
    say(" %d/%d:%d,%d,%d", status->MPI_SOURCE, status->MPI_TAG, count, elements, bytes);
}

/* A fault of the test's own, to see that it is found: MPISEC_LAB_PROGRAM_FAULT is `corrupt:VERB` or
 * `corrupt:VERB:KIND`, or has `stop` or `hang` in place of `corrupt`. */
static void make_fault(const struct step* step, struct buffer* buffer) {
    const char* wanted = getenv("MPISEC_LAB_PROGRAM_FAULT");
    if (!wanted) return;
    char kind[32], here[96];
    entry_text(step, "kind", 0, "", kind);
    const char* verb = strchr(wanted, ':') + 1;
    snprintf(here, sizeof here, strchr(verb, ':') ? "%s:%s" : "%s", step->verb, kind);
    if (strcmp(here, verb) != 0) return;
    if (wanted[0] == 's') _exit(9);
    while (wanted[0] == 'h') pause();
    if (buffer->memory && buffer->count > 0) buffer->start[buffer->layout.offsets[0]] ^= 1;
}

static void forget_open(struct pending* it) {
    const struct type* type = &it->in.layout;
    for (long i = it->in.count - it->open; i < it->in.count; ++i)
        for (int u = 0; u < type->units; ++u)
            memset(it->in.start + i * type->extent + type->offsets[u], 0, (size_t)type->unit_size);
}

static void say_pending(const struct slot* slot, struct pending* it) {
    make_fault(slot->step, &it->in);
    forget_open(it);
    if (it->receives) say_status(&it->status, &it->in, it->hide);
    if (it->in.memory) say("=%08x", (unsigned)(hash_buffer(&it->in) >> 32));
    if (it->out.memory) say(">%08x", (unsigned)(hash_buffer(&it->out) >> 32)); /* only read (M7) */
}

static int compare_wild(const void* a, const void* b) {
    const struct pending *x = *(struct pending*const*)a, *y = *(struct pending*const*)b;
    if (x->status.MPI_SOURCE != y->status.MPI_SOURCE)
        return x->status.MPI_SOURCE < y->status.MPI_SOURCE ? -1 : 1;
    if (x->status.MPI_TAG != y->status.MPI_TAG) return x->status.MPI_TAG < y->status.MPI_TAG ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Which of the wild messages a receive gets is open, but those of one source and tag keep their order. */
static void say_wild(const struct slot* slot) {
    struct pending** wild = get_memory((size_t)slot->count * sizeof *wild);
    int n = 0;
    for (int i = 0; i < slot->count; ++i)
        if (slot->list[i].wild) wild[n++] = &slot->list[i];
    qsort(wild, (size_t)n, sizeof *wild, compare_wild);
    for (int i = 0; i < n; ++i) say_pending(slot, wild[i]);
    free(wild);
}

static void tell(struct slot* slot) {
    for (int i = 0; i < slot->count; ++i)
        if (!slot->list[i].wild) say_pending(slot, &slot->list[i]);
    say_wild(slot);
    slot->active = 0;
}

void settle(struct slot* slot) {
    if (slot >= slots && slot < slots + MOST_SLOTS) return;
    char how[32];
    entry_text(slot->step, "how", world_rank, "waitall", how);
    complete(&slot, 1, how);
    tell(slot);
    forget(slot);
}

/* ---- steps */
static void complete_some(const struct step* step) {
    struct slot* list[MOST_SLOTS];
    char how[32];
    int n = 0;
    for (int i = 0; i < entries(step, "ids"); ++i) {
        struct slot* slot = &slots[entry(step, "ids", i, 0) % MOST_SLOTS];
        int twice = 0;
        for (int j = 0; j < n; ++j) twice |= list[j] == slot;
        if (slot->step && slot->active && !twice) list[n++] = slot;
    }
    entry_text(step, "how", world_rank, "waitall", how);
    complete(list, n, how);
    for (int i = 0; i < n; ++i) {
        say(" |%ld", (long)(list[i] - slots));
        tell(list[i]);
        if (!list[i]->persistent) forget(list[i]);
    }
}

static void start_one(struct pending* it) {
    OK(MPI_Start, (&it->request));
}

/* Receives first; a ready send starts when all members have started theirs. */
static void start(const struct step* step) {
    struct slot* slot = &slots[value(step, "id", 0) % MOST_SLOTS];
    if (!slot->step || !slot->persistent || slot->active) {
        say(" skipped");
        return;
    }
    struct comm* comm = comm_of(slot->step, "comm");
    int needs_barrier = is(slot->step, "send", "rsend");
    if (needs_barrier && !comm) {
        say(" skipped");
        return;
    }
    ++slot->starts;
    for (int i = 0; i < slot->count; ++i) {
        struct pending* it = &slot->list[i];
        if (it->out.memory) fill_buffer(&it->out, mix(it->out_seed, (uint64_t)slot->starts));
        if (it->in.memory) fill_buffer(&it->in, mix(it->in_seed, (uint64_t)slot->starts));
    }
    slot->active = 1;
    if (value(step, "all", 0) && !needs_barrier) {
        MPI_Request* requests = get_memory((size_t)slot->count * sizeof *requests);
        for (int i = 0; i < slot->count; ++i) requests[i] = slot->list[i].request;
        if (slot->count) OK(MPI_Startall, (slot->count, requests));
        free(requests);
        return;
    }
    for (int i = 0; i < slot->count; ++i)
        if (!slot->list[i].ready) start_one(&slot->list[i]);
    if (needs_barrier) OK(MPI_Barrier, (comm->comm));
    for (int i = 0; i < slot->count; ++i)
        if (slot->list[i].ready) start_one(&slot->list[i]);
}

int request_step(const struct step* step) {
    if (verb_is(step, "complete")) {
        complete_some(step);
    } else if (verb_is(step, "start")) {
        start(step);
    } else if (verb_is(step, "finish_duplicate")) {
        finish_duplicate((int)value(step, "comm", 0) % MOST_COMMS);
    } else {
        return 0;
    }
    return 1;
}

void finish_requests(void) {
    for (int i = 1; i < MOST_SLOTS; ++i) {
        struct slot* slot = &slots[i];
        if (!slot->step) continue;
        say(" |%d", i);
        if (slot->active) {
            complete(&slot, 1, "waitall");
            tell(slot);
        }
        forget(slot);
    }
}
