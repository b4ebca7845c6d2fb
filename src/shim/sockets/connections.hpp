// Connections of the MPI library that MPIsec authenticates: which those are, and how calls on them are served
// (docs/threat-model.md, "Limits"; docs/adr/0025-connections-of-the-mpi-library-are-authenticated.md).
//
// Some transports obey what a frame from the network says about this process's memory. So the bytes of their connections get tags below
// the MPI library (transport/authenticated_stream.hpp), whose system calls are intercepted here (interposed.cpp).
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <span>

#include "shim/process/process.hpp"

namespace mpisec::shim {

/// The authenticated connection on this file descriptor; null for every other file of the process.
Connection* connection_on(int descriptor);

/// Code at `caller` has asked for this connection. Does nothing unless the connection must be authenticated. Within a node it is
/// authenticated where there is a key, which a job on one node need not have.
void connecting(int descriptor, const sockaddr* to, const void* caller);
/// The same for an accepted connection. False: it cannot be authenticated and must be closed.
bool accepted(int descriptor, const void* caller);

ssize_t send_on(Connection& connection, int descriptor, std::span<const iovec> pieces, int flags);
ssize_t receive_on(Connection& connection, int descriptor, std::span<const iovec> pieces, int flags);

/// An epoll(7) set is told about this descriptor.
void watch_connection(int set, int operation, int descriptor, const epoll_event* event);
/// Keeps those of `n` events that say more than that a connection has received a part of a record. Returns how many remain.
int leave_out_incomplete(int set, epoll_event* events, int n);

/// The descriptor is about to be closed.
void forget_connection(int descriptor);

}  // namespace mpisec::shim
