/* Memory of each rank while the ranks of two nodes send each other messages, for an attacker who writes to that memory or asks for it.
 *
 *     connected stranger TEXT     rank 0 also connects to where the last rank listens, not through the MPI library, and sends that TEXT
 *     connected crowd TEXT        as often as VISITS, one connection after the other, and rank 1 says how much memory that has cost it
 *     connected again             and sends what the first connection to the last rank began with (below.c)
 *
 * BELOW_CLEAR is the text that the memory is full of. Addresses are not randomized, so that what one job prints holds for the next. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BYTES = 4096,
    MESSAGES = 10,
    LENGTH = 1000,
    LONG = 300000,
    THE_LONG_ONE = 2,
    GATHERED = 80000,
    MOST_RANKS = 4
};
enum { MOST_LISTENERS = 8, MOST_DESCRIPTORS = 256, SECONDS = 1, VISITS = 2000 };

static char memory[BYTES] __attribute__((aligned(4096)));
static char message[LONG], gathered[MOST_RANKS * GATHERED];

struct listeners {
    int count;
    struct sockaddr_in places[MOST_LISTENERS];
};

static uint64_t mix(uint64_t digest, const char* bytes, size_t n) {
    for (size_t i = 0; i < n; ++i) digest = (digest ^ (uint8_t)bytes[i]) * 0x100000001b3;
    return digest;
}

static void say(int rank, const char* what, uint64_t digest) {
    printf("rank %d %s %016llx\n", rank, what, (unsigned long long)digest);
}

/* Digest of what came. */
static uint64_t exchange(int rank, int other) {
    uint64_t digest = 0;
    for (int i = 0; i < MESSAGES; ++i) {
        const int length = i == THE_LONG_ONE ? LONG : LENGTH;
        for (int turn = 0; turn < 2; ++turn) {
            if ((rank < other) == (turn == 0)) {
                for (int k = 0; k < length; ++k) message[k] = (char)(rank + i + k);
                MPI_Send(message, length, MPI_CHAR, other, 0, MPI_COMM_WORLD);
            } else {
                MPI_Recv(message, length, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                digest = mix(digest, message, (size_t)length);
            }
        }
    }
    return digest;
}

/* Digest of what came. */
static uint64_t gather(int rank, int size) {
    for (int k = 0; k < GATHERED; ++k) message[k] = (char)(rank + k);
    MPI_Allgather(message, GATHERED, MPI_CHAR, gathered, GATHERED, MPI_CHAR, MPI_COMM_WORLD);
    return mix(0, gathered, (size_t)size * GATHERED);
}

static struct in_addr address_of_node(void) {
    struct in_addr found = {0};
    struct ifaddrs *all, *each;
    if (getifaddrs(&all) != 0) abort();
    for (each = all; each; each = each->ifa_next)
        if (each->ifa_addr && each->ifa_addr->sa_family == AF_INET && strcmp(each->ifa_name, "lo") != 0)
            found = ((struct sockaddr_in*)each->ifa_addr)->sin_addr;
    freeifaddrs(all);
    return found;
}

/* Where this process listens for other nodes. */
static struct listeners find_listeners(void) {
    struct listeners found = {.count = 0};
    const struct in_addr node = address_of_node();
    for (int fd = 0; fd < MOST_DESCRIPTORS && found.count < MOST_LISTENERS; ++fd) {
        struct sockaddr_in own;
        int listens = 0;
        socklen_t size = sizeof listens, length = sizeof own;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens ||
            getsockname(fd, (struct sockaddr*)&own, &length) != 0 || own.sin_family != AF_INET)
            continue;
        if (own.sin_addr.s_addr == htonl(INADDR_ANY)) own.sin_addr = node;
        if (own.sin_addr.s_addr == node.s_addr) found.places[found.count++] = own;
    }
    return found;
}

/* Says what becomes of the connections: "refused" when the other side ends it, "kept". */
static void visit(const struct listeners* listeners, const char* text, size_t length) {
    const struct timeval limit = {SECONDS, 0};
    for (int i = 0; i < listeners->count; ++i) {
        char answer[LENGTH];
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        if (connect(fd, (const struct sockaddr*)&listeners->places[i], sizeof listeners->places[i]) != 0) {
            close(fd); /* a launcher's, on another node, left open */
            continue;
        }
        if (write(fd, text, length) < 0) abort();
        ssize_t n;
        do n = recv(fd, answer, sizeof answer, 0);
        while (n > 0);
        printf("stranger of %zu bytes %s\n", length, n == 0 || errno == ECONNRESET ? "refused" : "kept");
        fflush(stdout); /* and it stays open */
    }
}

/* Each connection that is refused is followed by the next, at most so many. Says how many there were. */
static void visit_often(const struct listeners* listeners, const char* text, int most) {
    const struct timeval limit = {SECONDS, 0};
    int refused = 0;
    for (int i = 0; i < listeners->count; ++i) {
        char answer[LENGTH];
        ssize_t n = 0;
        for (int k = 0; k < most && (n == 0 || (n < 0 && errno == ECONNRESET)); ++k) {
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
            n = connect(fd, (const struct sockaddr*)&listeners->places[i], sizeof listeners->places[i]);
            if (n == 0) n = write(fd, text, strlen(text));
            while (n > 0) n = recv(fd, answer, sizeof answer, 0);
            const int error = errno;
            close(fd);
            errno = error;
            refused += n == 0 || error == ECONNRESET;
        }
    }
    printf("crowd of %d\n", refused);
    fflush(stdout);
}

static void let_a_crowd_in(int rank, const char* text) {
    struct listeners listeners = find_listeners();
    size_t before = 0;
    if (rank == 1) MPI_Send(&listeners, sizeof listeners, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&listeners, sizeof listeners, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; turn < 2; ++turn) { /* the first are those that cost something once */
        if (rank == 0) visit_often(&listeners, text, turn == 0 ? VISITS / 10 : VISITS);
        if (rank == 0) MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        if (rank != 1) continue;
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (turn == 0) before = mallinfo2().uordblks;
        if (turn == 1) printf("crowd took %lld bytes\n", (long long)(mallinfo2().uordblks - before));
    }
    fflush(stdout);
}

/* What the first connection to that rank began with. */
static size_t opening_of(int rank, char* bytes, size_t most) {
    char path[4096];
    snprintf(path, sizeof path, "%s/opening-%d", getenv("BELOW_DIRECTORY"), rank);
    FILE* file = fopen(path, "re");
    const size_t n = file ? fread(bytes, 1, most, file) : 0;
    if (file) fclose(file);
    return n;
}

static void let_a_stranger_in(int rank, int last, char** what) {
    struct listeners listeners = find_listeners();
    char opening[LENGTH];
    const char* text = what[1];
    size_t length = text ? strlen(text) : opening_of(last, opening, sizeof opening);
    int host = last;
    if (length == 0)
        length = opening_of(host = 0, opening, sizeof opening); /* that one has connected, then */
    if (rank == host) {
        MPI_Send(&listeners, sizeof listeners, MPI_BYTE, last - host, 1, MPI_COMM_WORLD);
    } else if (rank == last - host) {
        MPI_Recv(&listeners, sizeof listeners, MPI_BYTE, host, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        visit(&listeners, text ? text : opening, length);
    }
}

int main(int argc, char** argv) {
    if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
        personality(ADDR_NO_RANDOMIZE);
        execv("/proc/self/exe", argv);
        return 1;
    }
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char* text = getenv("BELOW_CLEAR");
    for (size_t i = 0; i < BYTES; ++i) memory[i] = text[i % strlen(text)];
    MPI_Barrier(MPI_COMM_WORLD);
    int* section = dlsym(RTLD_DEFAULT, "below_section");
    if (section) *section = 1;
    printf("rank %d at %p\n", rank, (void*)memory);
    fflush(stdout);
    if (argc > 2 && strcmp(argv[1], "crowd") == 0)
        let_a_crowd_in(rank, argv[2]);
    else if (argc > 1)
        let_a_stranger_in(rank, size - 1, argv + 1);
    const uint64_t messages = exchange(rank, (rank + size / 2) % size);
    say(rank, "messages", messages);
    say(rank, "gathered", gather(rank, size));
    say(rank, "memory", mix(0, memory, sizeof memory));
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d end\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
