// What is said when a connection of the MPI library cannot be authenticated, and when that ends the job.
#pragma once

#include <string>

#include "transport/authenticated_stream.hpp"

namespace mpisec::shim {

/// Takes the rank from the launcher's variables: MPIsec knows it only after MPI_Init, in which connections are made already.
void know_rank();

/// One of this process's connections with `peer` has failed. Ends the job unless the connection may belong to somebody else.
void say_what_failed(const std::string& peer, transport::AuthenticatedStream::Side side,
                     transport::AuthenticatedStream::Failure failure);

/// A connection with `peer` that this process has asked for was closed without an answer. Two processes that connect to each other close one of the
/// two connections, so some may stay unanswered; but libfabric would try for ever.
void count_unanswered(const std::string& peer);

}  // namespace mpisec::shim
