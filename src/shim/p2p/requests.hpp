// Request handles that MPIsec gives to the program (M6).
//
// A handle is an inactive persistent receive from MPI_PROC_NULL: a genuine request of the MPI library, unique while in use, convertible to
// Fortran. It stands for an operation; every procedure that takes requests is MPIsec's, so the library never sees it complete.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>

#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

struct UserRequest {
    MPI_Request handle{};
    bool in_use = false;
    std::unique_ptr<Operation> operation;                 ///< null: an inactive persistent request
    std::function<std::unique_ptr<Operation>()> restart;  ///< of a persistent request: starts its operation
    std::function<void()> at_end;  ///< of a persistent request: gives back what restart needs
};

/// A new handle for `operation`. Under the Guard.
MPI_Request give_request(std::unique_ptr<Operation> operation);
MPI_Request give_persistent(std::function<std::unique_ptr<Operation>()> restart,
                            std::function<void()> at_end);

/// Null when the handle is a plain one of the MPI library. Takes no lock when MPIsec has given out none.
UserRequest* find_request(MPI_Request request);
bool any_request_given();

/// Takes the handle back.
void retire_request(UserRequest& request);

/// Frees the handles; before the real MPI_Finalize (M14).
void free_requests();

}  // namespace mpisec::shim
