// The C library's functions that interposed.cpp replaces.
#pragma once

#include <sys/epoll.h>

#include "transport/authenticated_stream.hpp"

namespace mpisec::shim {

struct SystemCalls {
    int (*connect)(int, const sockaddr*, socklen_t);
    int (*accept)(int, sockaddr*, socklen_t*);
    int (*accept4)(int, sockaddr*, socklen_t*, int);
    int (*close)(int);
    int (*epoll_ctl)(int, int, int, epoll_event*);
    int (*epoll_wait)(int, epoll_event*, int, int);
    ssize_t (*readv)(int, const iovec*, int);
    ssize_t (*writev)(int, const iovec*, int);
    transport::SocketCalls on_sockets;
};

/// Looked up when first asked for, which may be before any constructor of this library has run.
const SystemCalls& system_calls();

}  // namespace mpisec::shim
