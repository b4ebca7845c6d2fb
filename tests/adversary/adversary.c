// clang-format off
/* The network as an attacker: a library preloaded under MPIsec. It defines PMPI_Send and its kin, which
 * MPIsec finds with dlsym(RTLD_NEXT), changes what passes and hands it to the real library. (It defines
 * MPI_Send… too, for the same attacks on plain MPI.)
 *
 * MPISEC_LAB_ATTACK chooses; it acts between adversary_arm() and adversary_disarm(), which victim.c calls on
 * the sending rank. A "frame" is what travels on one of the victim's communicators: a whole small message, or
 * header and first segment of a large one. A "segment" is what travels on another one: segment 1, 2, … of a
 * large message.
 *
 *     flip:PLACE            one bit of the first frame; PLACE: a byte's offset, from the end when negative, or middle
 *     flip-all:PLACE        of every frame
 *     claim:N               the first frame claims the counter of the N-th after it
 *     truncate:N            it loses its last N bytes (N 0: all of them)
 *     extend:N              it gets N more
 *     extra:N               before it goes one of its first N bytes
 *     replay-now            it goes out twice
 *     replay-later          once more after all others (adversary_disarm)
 *     swap                  the first two change places, whatever communicator, tag and destination they have
 *     drop                  it is lost
 *     record:FILE           it is written to FILE
 *     inject:FILE           it is replaced by the one in FILE
 *     flip-segment:K:PLACE  one bit of segment K
 *     truncate-segment:K    it loses a byte
 *     extend-segment:K      it gets one more
 *     swap-segments:K       segments K and K+1 change places (counted on, over several messages)
 *     replay-segment:K      segment K+1 is replaced by segment K
 *     drop-segment:K        segment K is lost
 *     repeat-segment:K      segment K goes out twice
 *     replay-all            every segment is replaced by the one of the same number, destination and length that
 *                           passed when the rank was armed the time before (it is replayed every second time)
 *     swap-rounds           the first segment changes places with the first one to the same destination that travels
 *                           on another communicator or with another tag
 *     overtake:MS           the third frame claims a counter that none has; at the receiver, the first receive's data comes
 *                           MS milliseconds after it was posted
 *     count                 changes nothing
 *
 * MPISEC_LAB_NONCES=PREFIX records, armed or not, the first 12 bytes of every frame to PREFIX.RANK with its
 * destination (test_nonces.py). */
// clang-format on
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef OPEN_MPI /* this library is also in processes without MPI (mpisec exec) */
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_comm_world
#endif

enum { SMALLEST_FRAME = 28, NONCE = 12 };

enum { MOST_KEPT = 4096 };

struct call {
    const char* name; /* of the procedure below */
    unsigned char* bytes;
    int n;
    int to, tag;
    MPI_Comm comm;
};

static int first_near = 0, last_near = -1; /* world ranks of this node, which this adversary leaves alone */
static struct call kept[MOST_KEPT];        /* replay-all: what passed at first */
static int keeping = 1, kept_count;

static struct {
    int armed, comms, frames, segments;
    MPI_Comm comm[8];
    struct call held; /* bytes kept back, to go out later */
} now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* real(const char* name) {
    char full[64];
    snprintf(full, sizeof full, "PMPI_%s", name);
    void* found = dlsym(RTLD_NEXT, full);
    if (!found) {
        fprintf(stderr, "adversary: no %s below\n", full);
        exit(3);
    }
    return found;
}
#define REAL(name) ((__typeof__(&MPI_##name))real(#name))

/* --- which attack --- */

static const char* attack(void) {
    const char* named = getenv("MPISEC_LAB_ATTACK");
    return named ? named : "count";
}
/* The argument after the attack's name, when that is `name`. */
static const char* if_attack(const char* name) {
    size_t length = strlen(name);
    if (strncmp(attack(), name, length) != 0) return NULL;
    if (attack()[length] == ':') return attack() + length + 1;
    return attack()[length] == 0 ? "" : NULL;
}
/* True when the attack is `name` on segment `number`. */
static int on_segment(const char* name, int number) {
    const char* argument = if_attack(name);
    return argument && atoi(argument) == number;
}

static void flip(struct call* call, const char* place) {
    int at = strcmp(place, "middle") == 0 ? call->n / 2 : atoi(place);
    if (at < 0) at += call->n;
    if (at >= 0 && at < call->n) call->bytes[at] ^= 0x01;
}

/* --- sending --- */

static int nothing_to_ask(void* state, MPI_Status* status) {
    (void)state;
    REAL(Status_set_elements)(status, MPI_BYTE, 0);
    REAL(Status_set_cancelled)(status, 0);
    return MPI_SUCCESS;
}
static int nothing_to_free(void* state) {
    return (void)state, MPI_SUCCESS;
}
static int nothing_to_cancel(void* state, int complete) {
    return (void)state, (void)complete, MPI_SUCCESS;
}

/* What the sender sees of a message that the network has swallowed. */
static int pretend(MPI_Request* request) {
    if (!request) return MPI_SUCCESS;
    REAL(Grequest_start)(nothing_to_ask, nothing_to_free, nothing_to_cancel, NULL, request);
    return REAL(Grequest_complete)(*request);
}

/* Sends what nobody waits for. */
static void send_away(const struct call* call) {
    MPI_Request request;
    REAL(Isend)(call->bytes, call->n, MPI_BYTE, call->to, call->tag, call->comm, &request);
    REAL(Request_free)(&request);
}

static int forward(const struct call* call, MPI_Request* request) {
    typedef int (*blocking)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    typedef int (*starting)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    void* procedure = real(call->name);
    if (request)
        return ((starting)procedure)(call->bytes, call->n, MPI_BYTE, call->to, call->tag, call->comm,
                                     request);
    return ((blocking)procedure)(call->bytes, call->n, MPI_BYTE, call->to, call->tag, call->comm);
}

static void hold(const struct call* call) {
    now.held = *call;
}

/* The held bytes go where this call goes and the other way round. */
static int exchange(struct call* call, MPI_Request* request) {
    struct call first = now.held, second = *call;
    first.bytes = call->bytes, first.n = call->n;
    second.bytes = now.held.bytes, second.n = now.held.n;
    send_away(&first);
    return forward(&second, request);
}

static void save(const struct call* call, const char* file) {
    FILE* out = fopen(file, "wb");
    if (!out) exit(3);
    fwrite(call->bytes, 1, (size_t)call->n, out);
    fclose(out);
}
static void load(struct call* call, const char* file) {
    FILE* in = fopen(file, "rb");
    if (!in) exit(3);
    static unsigned char bytes[1 << 20];
    call->n = (int)fread(bytes, 1, sizeof bytes, in);
    call->bytes = bytes;
    fclose(in);
}

static int attack_frame(struct call* call, MPI_Request* request) {
    int number = now.frames++;
    const char* argument;
    if (number == 1 && if_attack("swap")) return exchange(call, request);
    if ((argument = if_attack("flip-all"))) flip(call, argument);
    if (number == 2 && if_attack("overtake")) call->bytes[11] ^= 0x40;
    if (number > 0) return forward(call, request);
    if ((argument = if_attack("flip"))) flip(call, argument);
    if ((argument = if_attack("claim"))) call->bytes[4] = (unsigned char)(call->bytes[4] + atoi(argument));
    if ((argument = if_attack("truncate"))) {
        int off = atoi(argument);
        call->n = off ? (call->n > off ? call->n - off : 0) : 0;
    }
    if ((argument = if_attack("extend"))) call->n += atoi(argument);
    if ((argument = if_attack("record"))) save(call, argument);
    if ((argument = if_attack("inject"))) load(call, argument);
    if (if_attack("replay-now")) send_away(call);
    if ((argument = if_attack("extra"))) {
        struct call junk = *call;
        junk.n = atoi(argument);
        send_away(&junk);
    }
    if (if_attack("replay-later")) hold(call);
    if (if_attack("swap")) {
        hold(call);
        return pretend(request);
    }
    if (if_attack("drop")) return pretend(request);
    return forward(call, request);
}

static int attack_segment(struct call* call, MPI_Request* request) {
    int number = ++now.segments;
    const char* argument = if_attack("flip-segment");
    if (on_segment("flip-segment", number)) flip(call, strchr(argument, ':') + 1);
    if (on_segment("truncate-segment", number)) --call->n;
    if (on_segment("extend-segment", number)) ++call->n;
    if (on_segment("drop-segment", number)) return pretend(request);
    if (on_segment("repeat-segment", number)) send_away(call);
    if (on_segment("swap-segments", number)) {
        hold(call);
        return pretend(request);
    }
    if (on_segment("swap-segments", number - 1)) return exchange(call, request);
    if (if_attack("replay-all")) {
        if (keeping && kept_count < MOST_KEPT) kept[kept_count++] = *call;
        const struct call* old = keeping || number > kept_count ? NULL : &kept[number - 1];
        if (old && old->to == call->to && old->n == call->n) call->bytes = old->bytes;
    }
    if (if_attack("swap-rounds")) {
        if (number == 1) {
            hold(call);
            return pretend(request);
        }
        const struct call* first = &now.held;
        if (first->bytes && first->to == call->to && first->n == call->n &&
            (first->comm != call->comm || first->tag != call->tag)) {
            int code = exchange(call, request);
            memset(&now.held, 0, sizeof now.held);
            return code;
        }
    }
    if (on_segment("replay-segment", number)) hold(call);
    if (on_segment("replay-segment", number - 1)) call->bytes = now.held.bytes, call->n = now.held.n;
    return forward(call, request);
}

/* --- what MPIsec calls --- */

static int world_rank(int to, MPI_Comm comm) {
    MPI_Group world, mine;
    int found = -1;
    REAL(Comm_group)(MPI_COMM_WORLD, &world);
    REAL(Comm_group)(comm, &mine);
    REAL(Group_translate_ranks)(mine, 1, &to, world, &found);
    REAL(Group_free)(&world);
    REAL(Group_free)(&mine);
    return found;
}

static void note_nonce(const struct call* call, MPI_Datatype type) {
    static FILE* out;
    const char* prefix = getenv("MPISEC_LAB_NONCES");
    if (!prefix || type != MPI_BYTE || call->n < SMALLEST_FRAME || call->to < 0) return;
    const int kind = call->bytes[2] >> 4; /* src/wire/frame.hpp */
    if (kind != 1 && kind != 2) return;
    int rank = 0;
    if (!out) {
        char name[4096];
        REAL(Comm_rank)(MPI_COMM_WORLD, &rank);
        snprintf(name, sizeof name, "%s.%d", prefix, rank);
        out = fopen(name, "w");
        if (!out) exit(3);
    }
    fprintf(out, "%d %d ", world_rank(call->to, call->comm), call->n);
    for (int i = 0; i < NONCE; ++i) fprintf(out, "%02x", call->bytes[i]);
    fputc('\n', out);
    fflush(out);
}

/* MPIsec's notices (src/shim/p2p/channel_tags.hpp) belong to no call: one that tells of a failure may pass while the next
 * collective is attacked. */
static int is_notice(int tag) {
    int *upper_bound = NULL, found = 0;
    REAL(Comm_get_attr)(MPI_COMM_WORLD, MPI_TAG_UB, &upper_bound, &found);
    return found && tag == *upper_bound - 3;
}

static int pass(const char* name, const void* buffer, int n, MPI_Datatype type, int to, int tag,
                MPI_Comm comm, MPI_Request* request) {
    typedef int (*blocking)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
    typedef int (*starting)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
    pthread_mutex_lock(&lock);
    struct call call = {name, (unsigned char*)buffer, n, to, tag, comm};
    note_nonce(&call, type);
    int active = now.armed && type == MPI_BYTE && to >= 0, known = 0;
    for (int i = 0; i < now.comms; ++i) known |= now.comm[i] == comm;
    pthread_mutex_unlock(&lock);
    active = active && !is_notice(tag);
    if (active && last_near >= 0) {
        int world = world_rank(to, comm);
        active = world < first_near || world > last_near;
    }
    if (!active) {
        void* procedure = real(name);
        if (request) return ((starting)procedure)(buffer, n, type, to, tag, comm, request);
        return ((blocking)procedure)(buffer, n, type, to, tag, comm);
    }
    call.bytes =
        calloc((size_t)n + (1 << 18), 1); /* a copy that is never freed: requests may go on using it */
    memcpy(call.bytes, buffer, (size_t)n);
    return known ? attack_frame(&call, request) : attack_segment(&call, request);
}

#define SENDS(name)                                                                                 \
    int PMPI_##name(const void* buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
        return pass(#name, buffer, n, type, to, tag, comm, NULL);                                   \
    }                                                                                               \
    int MPI_##name(const void* buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm) {  \
        return pass(#name, buffer, n, type, to, tag, comm, NULL);                                   \
    }
#define STARTS(name)                                                                              \
    int PMPI_##name(const void* buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                    MPI_Request* request) {                                                       \
        return pass(#name, buffer, n, type, to, tag, comm, request);                              \
    }                                                                                             \
    int MPI_##name(const void* buffer, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,  \
                   MPI_Request* request) {                                                        \
        return pass(#name, buffer, n, type, to, tag, comm, request);                              \
    }
SENDS(Send)
SENDS(Ssend)
SENDS(Rsend)
STARTS(Isend)
STARTS(Issend)
STARTS(Irsend)

/* --- receiving: what is late --- */

static MPI_Request late;
static double late_until;

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int PMPI_Irecv(void* buffer, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request* request) {
    int code = REAL(Irecv)(buffer, n, type, from, tag, comm, request), known = 0;
    const char* argument = if_attack("overtake");
    if (!argument || late_until > 0) return code;
    for (int i = 0; i < now.comms; ++i) known |= now.comm[i] == comm;
    if (known) late = *request, late_until = now_ms() + atof(argument);
    return code;
}
int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    if (late_until > 0 && *request == late && now_ms() < late_until) return *flag = 0, MPI_SUCCESS;
    return REAL(Test)(request, flag, status);
}

/* --- what the victim calls --- */

/* Communicators whose messages are frames. */
void adversary_watch(MPI_Comm comm) {
    now.comm[now.comms++] = comm;
}
/* Messages to these world ranks never reach the network. */
void adversary_near(int first, int last) {
    first_near = first, last_near = last;
}
void adversary_arm(void) {
    static int rounds;
    keeping = ++rounds % 2;
    if (keeping) kept_count = 0;
    now.frames = now.segments = 0, now.armed = 1;
}
/* Returns the number of frames and segments that passed while armed. */
void adversary_disarm(int* frames, int* segments) {
    if (if_attack("replay-later") && now.held.bytes) send_away(&now.held);
    *frames = now.frames, *segments = now.segments;
    memset(&now.held, 0, sizeof now.held);
    now.armed = 0;
}
