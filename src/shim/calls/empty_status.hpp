// The status of a call that completes no message (MPI standard section 3.7.3).
#pragma once

#include <mpi.h>

#include "shim/p2p/operation.hpp"

namespace mpisec::shim {

/// Says also that there was no error, which the status of one message does not say.
inline void write_empty_status(MPI_Status* status) {
    write_status({}, status);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
}

}  // namespace mpisec::shim
