/* Preloaded into the ranks of a lab job: gives every TCP socket the rate of the lab's link.
 *
 * TCP paces itself to SO_MAX_PACING_RATE, smoothly and without loss, where a token bucket on the interface
 * lets bursts through or collapses the window. MPISEC_LAB_PACING is the rate in bytes per second; without it
 * nothing is changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

static void pace(int fd) {
    const char* text = getenv("MPISEC_LAB_PACING");
    uint64_t rate = text ? strtoull(text, NULL, 10) : 0;
    int saved = errno, domain = 0, type = 0;
    socklen_t size = sizeof domain;
    if (fd < 0 || rate == 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
        (domain != AF_INET && domain != AF_INET6)) {
        errno = saved;
        return;
    }
    size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM)
        setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    errno = saved;
}

int socket(int domain, int type, int protocol) {
    static int (*real)(int, int, int);
    if (!real) real = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    int fd = real(domain, type, protocol);
    pace(fd);
    return fd;
}

int accept(int listener, struct sockaddr* restrict address, socklen_t* restrict length) {
    static int (*real)(int, struct sockaddr*, socklen_t*);
    if (!real) real = (int (*)(int, struct sockaddr*, socklen_t*))dlsym(RTLD_NEXT, "accept");
    int fd = real(listener, address, length);
    pace(fd);
    return fd;
}

int accept4(int listener, struct sockaddr* restrict address, socklen_t* restrict length, int flags) {
    static int (*real)(int, struct sockaddr*, socklen_t*, int);
    if (!real) real = (int (*)(int, struct sockaddr*, socklen_t*, int))dlsym(RTLD_NEXT, "accept4");
    int fd = real(listener, address, length, flags);
    pace(fd);
    return fd;
}
