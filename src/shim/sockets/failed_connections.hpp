// What is said when a connection of the MPI library cannot be authenticated, and when that ends the job.
#pragma once

#include <new>
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

[[noreturn]] void end_without_memory() noexcept;
/// What `action` returns. Ends the job where memory is lacking: no exception passes through the MPI library, which has made the call. It may use the
/// connection then, so the action must hold its locks itself.
template <class Action>
auto without_exceptions(Action action) {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        end_without_memory();
    }
}

}  // namespace mpisec::shim
