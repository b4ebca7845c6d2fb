// Connections of the MPI library that MPIsec authenticates: which those are, and what becomes of their calls
// (docs/threat-model.md, "Limits"; docs/adr/0025-connections-of-the-mpi-library-are-authenticated.md).
//
// Some transports obey what a frame from the network says about this process's memory. So these connections' bytes get tags below the
// MPI library (transport/authenticated_stream.hpp), whose calls of the system are taken here (interposed.cpp).
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <span>

#include "shim/process/process.hpp"

namespace mpisec::shim {

/// The authenticated connection on this file descriptor; null for every other file of the process.
Connection* connection_on(int descriptor);

/// The object at `caller` has asked for this connection. Does nothing unless it is to be authenticated. Within a node it is authenticated
/// where there is a key, which a job on one node need not have.
void connecting(int descriptor, const sockaddr* to, const void* caller);
/// The same. False: it cannot be, and is to be closed.
bool accepted(int descriptor, const void* caller);

ssize_t send_on(Connection& connection, int descriptor, std::span<const iovec> pieces, int flags);
ssize_t receive_on(Connection& connection, int descriptor, std::span<const iovec> pieces, int flags);

/// The set of epoll(7) is told about this descriptor.
void watch_connection(int set, int operation, int descriptor, const epoll_event* event);
/// Of `n` events those that say more than that a connection has got a part of a record. Returns how many.
int leave_out_incomplete(int set, epoll_event* events, int n);

/// The descriptor is about to be closed.
void forget_connection(int descriptor);

}  // namespace mpisec::shim
