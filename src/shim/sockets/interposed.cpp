// The C library's procedures for sockets, under their own names: this library is loaded before the C library, so calls of the whole
// process arrive here. They are passed on to the C library at once, unless they are on an authenticated connection (connections.hpp).
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

#include "shim/process/system_calls.hpp"
#include "shim/sockets/connections.hpp"

namespace mpisec::shim {
namespace {

template <class Function>
void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// The result of an accept(); -1 where the connection must be refused.
int admitted(int descriptor, const void* caller) {
    if (descriptor < 0 || accepted(descriptor, caller)) return descriptor;
    system_calls().close(descriptor);
    errno = ECONNABORTED;
    return -1;
}

std::span<const iovec> pieces_of(const msghdr& message) {
    return {message.msg_iov, message.msg_iovlen};
}

}  // namespace

/// Threads that look them up at the same time find the same.
const SystemCalls& system_calls() {
    SystemCalls& calls = process.system_calls;
    if (process.system_calls_found.load(std::memory_order_acquire)) return calls;
    find(calls.connect, "connect");
    find(calls.accept, "accept");
    find(calls.accept4, "accept4");
    find(calls.close, "close");
    find(calls.epoll_ctl, "epoll_ctl");
    find(calls.epoll_wait, "epoll_wait");
    find(calls.readv, "readv");
    find(calls.writev, "writev");
    find(calls.on_sockets.send, "send");
    find(calls.on_sockets.sendmsg, "sendmsg");
    find(calls.on_sockets.recv, "recv");
    find(calls.on_sockets.recvmsg, "recvmsg");
    process.system_calls_found.store(true, std::memory_order_release);
    return calls;
}

}  // namespace mpisec::shim

using namespace mpisec::shim;

#define MPISEC_SHOWN extern "C" __attribute__((visibility("default")))

MPISEC_SHOWN int connect(int descriptor, const sockaddr* to, socklen_t size) {
    const int result = system_calls().connect(descriptor, to, size);
    const int error = errno;
    if (result == 0 || error == EINPROGRESS || error == EINTR)
        connecting(descriptor, to, __builtin_return_address(0));
    errno = error;
    return result;
}

MPISEC_SHOWN int accept(int descriptor, sockaddr* from, socklen_t* size) {
    const int result = system_calls().accept(descriptor, from, size);
    return admitted(result, __builtin_return_address(0));
}

MPISEC_SHOWN int accept4(int descriptor, sockaddr* from, socklen_t* size, int flags) {
    const int result = system_calls().accept4(descriptor, from, size, flags);
    return admitted(result, __builtin_return_address(0));
}

MPISEC_SHOWN ssize_t send(int descriptor, const void* data, size_t n, int flags) {
    Connection* connection = connection_on(descriptor);
    if (!connection) return system_calls().on_sockets.send(descriptor, data, n, flags);
    const iovec piece = {const_cast<void*>(data), n};
    return send_on(*connection, descriptor, {&piece, 1}, flags);
}

MPISEC_SHOWN ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
    Connection* connection = connection_on(descriptor);
    if (!connection) return system_calls().on_sockets.sendmsg(descriptor, message, flags);
    return send_on(*connection, descriptor, pieces_of(*message), flags);
}

MPISEC_SHOWN ssize_t writev(int descriptor, const iovec* pieces, int count) {
    Connection* connection = connection_on(descriptor);
    if (!connection || count < 0) return system_calls().writev(descriptor, pieces, count);
    return send_on(*connection, descriptor, {pieces, static_cast<std::size_t>(count)}, 0);
}

MPISEC_SHOWN ssize_t recv(int descriptor, void* data, size_t n, int flags) {
    Connection* connection = connection_on(descriptor);
    if (!connection) return system_calls().on_sockets.recv(descriptor, data, n, flags);
    const iovec piece = {data, n};
    return receive_on(*connection, descriptor, {&piece, 1}, flags);
}

MPISEC_SHOWN ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
    Connection* connection = connection_on(descriptor);
    if (!connection || (flags & MSG_ERRQUEUE))
        return system_calls().on_sockets.recvmsg(descriptor, message, flags);
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
    return receive_on(*connection, descriptor, pieces_of(*message), flags);
}

MPISEC_SHOWN ssize_t readv(int descriptor, const iovec* pieces, int count) {
    Connection* connection = connection_on(descriptor);
    if (!connection || count < 0) return system_calls().readv(descriptor, pieces, count);
    return receive_on(*connection, descriptor, {pieces, static_cast<std::size_t>(count)}, 0);
}

MPISEC_SHOWN int epoll_ctl(int set, int operation, int descriptor, epoll_event* event) {
    watch_connection(set, operation, descriptor, event);
    return system_calls().epoll_ctl(set, operation, descriptor, event);
}

MPISEC_SHOWN int epoll_wait(int set, epoll_event* events, int most, int timeout) {
    const int n = system_calls().epoll_wait(set, events, most, timeout);
    return n > 0 ? leave_out_incomplete(set, events, n) : n;
}

MPISEC_SHOWN int close(int descriptor) {
    forget_connection(descriptor);
    return system_calls().close(descriptor);
}
