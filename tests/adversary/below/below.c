/* An attacker below the MPI library: sits in every TCP connection between nodes and changes the library's own
 * messages.
 *
 * Preloaded into each rank. A connection that the library accepts from another node is given a relay: the
 * library gets one end of a local connection instead, and a thread carries messages between that and the
 * network, in both directions, whole, and changes the one that it was told to. So every byte between nodes
 * passes here, below everything that the MPI library does.
 *
 *     BELOW_FRAMING    xnet, btl, uct or records (framing.h)
 *     BELOW_DIRECTORY  where to write: frames-R (BELOW_RECORD=1), hits-R, clear-R, led-R, opening-R
 *     BELOW_ATTACK     "S>R#K[/KIND] MUTATION[:ARGUMENT…]": message K (from 0) from rank S to rank R, or the
 *                      first from K on of that kind; mutations are in mutate.h
 *     BELOW_CLEAR      text that must not cross the network
 *     BELOW_LEAD       "R>S": whoever connects to rank R from another node is led to rank S of R's node instead
 *
 * A program may set below_section (an int) to say in the records what it is doing. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "framing.h"
#include "mutate.h"

volatile int below_section; /* set by the program */

enum { MOST_CONNECTIONS = 256, MOST_RANKS = 64, CHUNK = 1 << 18, SHOWN = 64 };

/* One direction of a connection. */
struct stream {
    struct bytes in, out;
    struct history history;
    struct held held;
    int from, to; /* sockets */
    int sender, receiver;
    int begun, lost; /* lost: no frames could be told any more; bytes pass as they are */
    int ended, closed;
};

struct connection {
    int ours, network, theirs; /* sockets; theirs is the library's */
    struct sockaddr_in peer, local;
    struct stream in, out;
    int known; /* whether the peer's rank is known */
};

static struct connection connections[MOST_CONNECTIONS];
static int connection_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int wake[2] = {-1, -1};
static int own_rank = -1;
static int passed[MOST_RANKS][MOST_RANKS];
static struct attack attack;
static const struct framing* framing;
static const char* directory;
static const char* marker;
static int led_from = -1, led_to = -1;
static FILE *records, *hits;

static int (*real_accept4)(int, struct sockaddr*, socklen_t*, int);
static int (*real_connect)(int, const struct sockaddr*, socklen_t);
static int (*real_listen)(int, int);
static int (*real_getpeername)(int, struct sockaddr*, socklen_t*);
static int (*real_getsockname)(int, struct sockaddr*, socklen_t*);

static FILE* open_log(const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%d", directory, name, own_rank);
    FILE* file = fopen(path, "ae");
    if (file) setvbuf(file, NULL, _IOLBF, 0);
    return file;
}

/* Says in whose code the process dies (Open MPI says so itself). */
static void tell_where(int signal_number, siginfo_t* info, void* context) {
    Dl_info where = {.dli_fname = "unknown code"};
    char text[4200];
    (void)info;
#ifdef __x86_64__
    dladdr((void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP], &where);
#else
    (void)context;
#endif
    int n = snprintf(text, sizeof text, "below: rank %d dies of signal %d in %s\n", own_rank, signal_number,
                     where.dli_fname);
    if (write(2, text, (size_t)n) != n) _exit(4);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_for_crashes(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    struct sigaction action = {.sa_sigaction = tell_where, .sa_flags = SA_SIGINFO};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; ++i) sigaction(signals[i], &action, NULL);
}

__attribute__((constructor)) static void start(void) {
    static const char* const ranks[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"};
    real_accept4 = (int (*)(int, struct sockaddr*, socklen_t*, int))dlsym(RTLD_NEXT, "accept4");
    real_connect = (int (*)(int, const struct sockaddr*, socklen_t))dlsym(RTLD_NEXT, "connect");
    real_listen = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
    real_getpeername = (int (*)(int, struct sockaddr*, socklen_t*))dlsym(RTLD_NEXT, "getpeername");
    real_getsockname = (int (*)(int, struct sockaddr*, socklen_t*))dlsym(RTLD_NEXT, "getsockname");
    for (unsigned i = 0; i < sizeof ranks / sizeof *ranks && own_rank < 0; ++i)
        if (getenv(ranks[i])) own_rank = atoi(getenv(ranks[i]));
    directory = getenv("BELOW_DIRECTORY");
    marker = getenv("BELOW_CLEAR");
    const char* name = getenv("BELOW_FRAMING");
    for (unsigned i = 0; name && i < sizeof framings / sizeof *framings; ++i)
        if (strcmp(framings[i].name, name) == 0) framing = &framings[i];
    if (own_rank < 0 || own_rank >= MOST_RANKS || !directory || !framing) {
        framing = NULL;
        return;
    }
    if (getenv("BELOW_ATTACK") && parse_attack(getenv("BELOW_ATTACK"), &attack) != 0) {
        fprintf(stderr, "below: BELOW_ATTACK is not understood: %s\n", getenv("BELOW_ATTACK"));
        _exit(3);
    }
    if (getenv("BELOW_LEAD") && sscanf(getenv("BELOW_LEAD"), "%d>%d", &led_from, &led_to) != 2) {
        fprintf(stderr, "below: BELOW_LEAD is not understood: %s\n", getenv("BELOW_LEAD"));
        _exit(3);
    }
    watch_for_crashes();
}

/* Who is on the other side: the side that connects leaves its rank in a file named after its address. */
static void port_file(char* path, size_t size, const struct sockaddr_in* address) {
    snprintf(path, size, "%s/port-%s-%d", directory, inet_ntoa(address->sin_addr), ntohs(address->sin_port));
}

static int rank_of(const struct sockaddr_in* address) {
    char path[4096];
    int rank = -1;
    port_file(path, sizeof path, address);
    for (int tries = 0; tries < 200 && rank < 0; ++tries) {
        FILE* file = fopen(path, "re");
        if (file) {
            if (fscanf(file, "%d", &rank) != 1) rank = -1;
            fclose(file);
        }
        if (rank < 0) usleep(1000);
    }
    return rank < 0 || rank >= MOST_RANKS ? MOST_RANKS - 1 : rank;
}

static void log_frame(FILE* file, const char* what, const struct stream* stream, int number,
                      const struct frame* frame, const uint8_t* bytes) {
    if (!file) return;
    char text[2 * SHOWN + 1] = "";
    for (size_t i = 0; i < frame->length && i < SHOWN; ++i) sprintf(text + 2 * i, "%02x", bytes[i]);
    fprintf(file, "%s %d>%d#%d %d %s %zu %d %s", what, stream->sender, stream->receiver, number,
            below_section, frame->kind, frame->length, frame->header, text);
    for (int i = 0; i < frame->count; ++i)
        fprintf(file, " %s:%d:%d", frame->fields[i].name, frame->fields[i].offset, frame->fields[i].size);
    fprintf(file, "\n");
}

static void look_for_marker(const struct stream* stream, const uint8_t* bytes, size_t n) {
    if (!marker || !memmem(bytes, n, marker, strlen(marker))) return;
    FILE* file = open_log("clear");
    if (!file) return;
    fprintf(file, "clear %d>%d %d %zu\n", stream->sender, stream->receiver, below_section, n);
    fclose(file);
}

/* What the first connection to this rank began with, for whoever wants to say it once more: opening-R. */
static void keep_opening(const struct stream* stream, const struct frame* frame, const uint8_t* bytes) {
    if (stream != &connections[0].in ||
        (strcmp(frame->kind, "hello") != 0 && strcmp(frame->kind, "early") != 0))
        return;
    FILE* file = open_log("opening");
    if (!file) return;
    fwrite(bytes, 1, frame->length, file);
    fclose(file);
}

/* Carries one whole frame over, or what the attack makes of it. */
static void carry(struct stream* stream, const struct frame* frame, const uint8_t* bytes) {
    int number = passed[stream->sender][stream->receiver]++;
    struct message message = {framing, frame, bytes, stream->sender, stream->receiver, number, below_section};
    look_for_marker(stream, bytes, frame->length);
    log_frame(records, "frame", stream, number, frame, bytes);
    keep_opening(stream, frame, bytes);
    int hit = apply(&attack, &message, &stream->history, &stream->held, &stream->out);
    if (hit) log_frame(hits, "hit", stream, number, frame, bytes);
    if (stream->held.end) stream->ended = 1;
}

static void cut_frames(struct stream* stream) {
    size_t at = 0;
    while (at < stream->in.size && !stream->lost && !stream->ended) {
        struct frame frame = {.kind = "other"};
        if (framing->parse(stream->in.data + at, stream->in.size - at, stream->begun, &frame) != 0) {
            struct frame rest = {.kind = "LOST", .length = stream->in.size - at, .header = 0};
            log_frame(hits, "lost", stream, -1, &rest, stream->in.data + at);
            stream->lost = 1;
            break;
        }
        if (frame.length == 0 || frame.length > stream->in.size - at) break;
        carry(stream, &frame, stream->in.data + at);
        stream->begun = 1;
        at += frame.length;
    }
    if (stream->lost) {
        put(&stream->out, stream->in.data + at, stream->in.size - at);
        at = stream->in.size;
    }
    take_away(&stream->in, at);
}

static void open_logs(void) {
    if (!hits) hits = open_log("hits");
    if (!records && getenv("BELOW_RECORD")) records = open_log("frames");
}

static void receive(struct connection* connection, struct stream* stream) {
    static uint8_t buffer[CHUNK];
    ssize_t n = recv(stream->from, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        stream->ended = 1;
        put(&stream->out, stream->in.data, stream->in.size);
        take_away(&stream->in, stream->in.size);
        release(&stream->held, &stream->out);
        return;
    }
    if (!connection->known) {
        int peer = rank_of(&connection->peer);
        connection->in.sender = connection->out.receiver = peer;
        connection->in.receiver = connection->out.sender = own_rank;
        connection->known = 1;
        open_logs();
    }
    put(&stream->in, buffer, (size_t)n);
    cut_frames(stream);
}

static void deliver(struct stream* stream) {
    while (stream->out.size > 0) {
        ssize_t n = send(stream->to, stream->out.data, stream->out.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            take_away(&stream->out, stream->out.size);
            stream->closed = 1;
            return;
        }
        take_away(&stream->out, (size_t)n);
    }
    if (stream->ended && !stream->closed) {
        shutdown(stream->to, SHUT_WR);
        stream->closed = 1;
    }
}

static void* relay(void* unused) {
    static struct pollfd polled[1 + 2 * MOST_CONNECTIONS];
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        int count = connection_count;
        pthread_mutex_unlock(&lock);
        int waiting = 0;
        polled[0] = (struct pollfd){wake[0], POLLIN, 0};
        for (int i = 0; i < count; ++i) {
            struct connection* each = &connections[i];
            short network = (each->in.ended ? 0 : POLLIN) | (each->out.out.size ? POLLOUT : 0);
            short ours = (each->out.ended ? 0 : POLLIN) | (each->in.out.size ? POLLOUT : 0);
            polled[1 + 2 * i] = (struct pollfd){network ? each->network : -1, network, 0};
            polled[2 + 2 * i] = (struct pollfd){ours ? each->ours : -1, ours, 0};
            waiting |= each->in.held.bytes.size > 0 || each->out.held.bytes.size > 0;
        }
        poll(polled, (nfds_t)(1 + 2 * count), waiting ? 20 : -1);
        char byte;
        while (read(wake[0], &byte, 1) == 1) {
        }
        for (int i = 0; i < count; ++i) {
            struct connection* each = &connections[i];
            if (polled[1 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR) && !each->in.ended)
                receive(each, &each->in);
            if (polled[2 + 2 * i].revents & (POLLIN | POLLHUP | POLLERR) && !each->out.ended)
                receive(each, &each->out);
            release_late(&each->in.held, &each->in.out);
            release_late(&each->out.held, &each->out.out);
            deliver(&each->in);
            deliver(&each->out);
        }
    }
    return NULL;
}

/* Two ends of a connection on the loopback interface: of TCP, since the library sets TCP's options on its
 * end. */
static int local_pair(int flags, int* ours) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int theirs = socket(AF_INET, SOCK_STREAM | flags, 0);
    int one = 1;
    *ours = -1;
    if (bind(listener, (struct sockaddr*)&address, size) == 0 && listen(listener, 1) == 0 &&
        real_getsockname(listener, (struct sockaddr*)&address, &size) == 0) {
        real_connect(theirs, (struct sockaddr*)&address, size);
        *ours = real_accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        setsockopt(*ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    close(listener);
    return theirs;
}

static int between_nodes(int fd, struct sockaddr_in* peer, struct sockaddr_in* local) {
    socklen_t size = sizeof *peer;
    if (real_getpeername(fd, (struct sockaddr*)peer, &size) != 0 || peer->sin_family != AF_INET) return 0;
    size = sizeof *local;
    if (real_getsockname(fd, (struct sockaddr*)local, &size) != 0) return 0;
    return peer->sin_addr.s_addr != local->sin_addr.s_addr && ntohl(peer->sin_addr.s_addr) >> 24 != 127;
}

/* The library's end of a relay for the accepted socket. */
static int put_relay_between(int network, int flags, const struct sockaddr_in* peer,
                             const struct sockaddr_in* local) {
    int ours, one = 1;
    int theirs = local_pair(flags, &ours);
    if (theirs < 0 || ours < 0) abort();
    setsockopt(network, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    pthread_mutex_lock(&lock);
    if (connection_count == MOST_CONNECTIONS) abort();
    struct connection* connection = &connections[connection_count];
    connection->ours = connection->in.to = connection->out.from = ours;
    connection->network = connection->in.from = connection->out.to = network;
    connection->theirs = theirs;
    connection->peer = *peer;
    connection->local = *local;
    int first = connection_count++ == 0;
    pthread_mutex_unlock(&lock);
    if (first) {
        pthread_t thread;
        if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0 || pthread_create(&thread, NULL, relay, NULL) != 0)
            abort();
    }
    if (write(wake[1], "", 1) != 1) abort();
    return theirs;
}

/* A job of a systematic run shares its cores with many others, and most of its time may be one wait for a message that the attack took.
 * So who yields (MPISEC_YIELD, mpi_yield_when_idle) sleeps for a moment instead, who has heard nothing for long sleeps longer, and who polls
 * its sockets then waits for them. */
static long microseconds_of_silence(int heard) {
    static _Thread_local struct timespec last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (heard || last.tv_sec == 0) last = now;
    return (now.tv_sec - last.tv_sec) * 1000000 + (now.tv_nsec - last.tv_nsec) / 1000;
}

enum { SHORT_PAUSE = 50, LONG_PAUSE = 2000, LONG_SILENCE = 50000 };

static void pause_for(long microseconds) {
    const struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

int sched_yield(void) {
    pause_for(microseconds_of_silence(0) > LONG_SILENCE ? LONG_PAUSE : SHORT_PAUSE);
    return 0;
}

int nanosleep(const struct timespec* asked, struct timespec* left) {
    if (asked->tv_sec == 0 && asked->tv_nsec < LONG_PAUSE * 1000 &&
        microseconds_of_silence(0) > LONG_SILENCE) {
        pause_for(LONG_PAUSE);
        return 0;
    }
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, asked, left);
    if (error) errno = error;
    return error ? -1 : 0;
}

int epoll_wait(int fd, struct epoll_event* events, int most, int timeout) {
    if (timeout == 0 && microseconds_of_silence(0) > LONG_SILENCE) timeout = LONG_PAUSE / 1000;
    int ready = epoll_pwait(fd, events, most, timeout, NULL);
    if (ready > 0) microseconds_of_silence(1);
    return ready;
}

int accept4(int fd, struct sockaddr* address, socklen_t* size, int flags) {
    struct sockaddr_in peer, local;
    int accepted = real_accept4(fd, address, size, framing ? 0 : flags);
    if (accepted < 0 || !framing) return accepted;
    if (between_nodes(accepted, &peer, &local)) return put_relay_between(accepted, flags, &peer, &local);
    if (flags & SOCK_CLOEXEC) fcntl(accepted, F_SETFD, FD_CLOEXEC);
    if (flags & SOCK_NONBLOCK) fcntl(accepted, F_SETFL, fcntl(accepted, F_GETFL) | O_NONBLOCK);
    return accepted;
}

int accept(int fd, struct sockaddr* address, socklen_t* size) {
    return accept4(fd, address, size, 0);
}

static void listeners_file(char* path, size_t size, int rank) {
    snprintf(path, size, "%s/listeners-%d", directory, rank);
}

/* Where each rank listens, in order. */
int listen(int fd, int backlog) {
    struct sockaddr_in own;
    socklen_t length = sizeof own;
    int result = real_listen(fd, backlog);
    int error = errno;
    if (framing && result == 0 && real_getsockname(fd, (struct sockaddr*)&own, &length) == 0 &&
        own.sin_family == AF_INET) {
        char path[4096];
        listeners_file(path, sizeof path, own_rank);
        FILE* file = fopen(path, "ae");
        if (file) {
            fprintf(file, "%d\n", ntohs(own.sin_port));
            fclose(file);
        }
    }
    errno = error;
    return result;
}

static int listeners_of(int rank, int* ports, int most) {
    char path[4096];
    int count = 0;
    listeners_file(path, sizeof path, rank);
    FILE* file = fopen(path, "re");
    while (file && count < most && fscanf(file, "%d", &ports[count]) == 1) ++count;
    if (file) fclose(file);
    return count;
}

/* Another address in place of the one that is led elsewhere. */
static void lead(struct sockaddr_in* to) {
    enum { MOST = 16 };
    int from[MOST], instead[MOST];
    int count = listeners_of(led_from, from, MOST);
    if (listeners_of(led_to, instead, MOST) != count) return;
    for (int i = 0; i < count; ++i)
        if (to->sin_port == htons((uint16_t)from[i])) {
            FILE* file = open_log("led");
            if (file) {
                fprintf(file, "led %d: %d to %d\n", own_rank, from[i], instead[i]);
                fclose(file);
            }
            to->sin_port = htons((uint16_t)instead[i]);
            return;
        }
}

int connect(int fd, const struct sockaddr* address, socklen_t size) {
    struct sockaddr_in own, led;
    socklen_t length = sizeof own;
    if (framing && led_from >= 0 && address->sa_family == AF_INET && own_rank != led_from &&
        own_rank != led_to) {
        memcpy(&led, address, sizeof led);
        lead(&led);
        address = (const struct sockaddr*)&led;
    }
    int result = real_connect(fd, address, size);
    int error = errno;
    if (framing && address->sa_family == AF_INET && (result == 0 || error == EINPROGRESS) &&
        real_getsockname(fd, (struct sockaddr*)&own, &length) == 0) {
        char path[4096];
        port_file(path, sizeof path, &own);
        FILE* file = fopen(path, "we");
        if (file) {
            fprintf(file, "%d\n", own_rank);
            fclose(file);
        }
    }
    errno = error;
    return result;
}

static int answer_for(int fd, struct sockaddr* address, socklen_t* size, int peer) {
    int error = 1;
    struct sockaddr_in now, other;
    socklen_t length = sizeof now;
    pthread_mutex_lock(&lock);
    for (int i = connection_count - 1; i >= 0 && error; --i) {
        struct connection* each = &connections[i];
        if (each->theirs != fd) continue;
        /* The number may have been taken by another socket since. */
        if (real_getsockname(fd, (struct sockaddr*)&now, &length) != 0) break;
        length = sizeof other;
        if (real_getpeername(each->ours, (struct sockaddr*)&other, &length) != 0 ||
            other.sin_port != now.sin_port)
            break;
        const struct sockaddr_in* answer = peer ? &each->peer : &each->local;
        memcpy(address, answer, *size < sizeof *answer ? *size : sizeof *answer);
        *size = sizeof *answer;
        error = 0;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

int getpeername(int fd, struct sockaddr* address, socklen_t* size) {
    if (framing && answer_for(fd, address, size, 1) == 0) return 0;
    return real_getpeername(fd, address, size);
}

int getsockname(int fd, struct sockaddr* address, socklen_t* size) {
    if (framing && answer_for(fd, address, size, 0) == 0) return 0;
    return real_getsockname(fd, address, size);
}

/* What the library has sent before the process ends would be the kernel's to deliver: wait until it has been.
 */
__attribute__((destructor)) static void finish(void) {
    pthread_mutex_lock(&lock);
    int count = connection_count;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; ++i) {
        struct sockaddr_in now;
        socklen_t length = sizeof now;
        if (real_getpeername(connections[i].ours, (struct sockaddr*)&now, &length) == 0)
            shutdown(connections[i].ours, SHUT_RD);
    }
    for (int i = 0; i < count; ++i)
        for (int tries = 0; tries < 500 && !connections[i].out.closed; ++tries) usleep(1000);
}
