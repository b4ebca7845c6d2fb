// What a status says of a sealed message.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

/// Bytes of MPI's message that the status describes; 0 when they are undefined.
inline std::size_t wire_bytes_of(const MPI_Status& status) {
#ifdef MPICH_NUMVERSION
    // As MPI_Get_count does, without its code in the path of every message: the MPICH ABI initiative fixes these fields for all of its
    // libraries. The lowest bit of the second tells whether the receive was cancelled.
    const auto low = static_cast<unsigned>(status.count_lo);
    const auto high = static_cast<unsigned>(status.count_hi_and_cancelled) >> 1;
    return static_cast<std::size_t>(high) << 32 | low;
#elif defined(OPEN_MPI)
    return status._ucount;  // the same in Open MPI, since 1.7
#else
    MPI_Count bytes = 0;
    real.Get_elements_x(&status, constants.byte, &bytes);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
#endif
}

/// A receive or probe that names its source finds that rank's messages only. An envelope that says otherwise cannot be trusted: it may name
/// a rank of this node, whose messages need not be sealed.
inline MPI_Status from_named_source(int source, MPI_Status status) {
    if (source != MPI_ANY_SOURCE) status.MPI_SOURCE = source;
    return status;
}

}  // namespace mpisec::shim
