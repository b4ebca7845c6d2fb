// Calls to the real library with a count of MPI_Count: its int procedure where the count fits, else its _c
// variant.
#pragma once

#include <mpi.h>

#include <climits>

#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

/// `big` is null where the library has no _c variants (Open MPI): then a larger count is MPI_ERR_COUNT.
template <class Small, class Big, class Buf, class... Rest>
int call_counted(Small small, Big big, Buf buf, MPI_Count count, Rest... rest) {
    if (count <= INT_MAX) return small(buf, static_cast<int>(count), rest...);
    if constexpr (!std::is_same_v<Big, std::nullptr_t>) {
        if (big) return big(buf, count, rest...);
    }
    return MPI_ERR_COUNT;
}

// Both variants of a procedure, as the first two arguments of call_counted.
#ifdef OPEN_MPI
#define MPISEC_BOTH(name) ::mpisec::shim::real.name, nullptr
#else
#define MPISEC_BOTH(name) ::mpisec::shim::real.name, ::mpisec::shim::real.name##_c
#endif

}  // namespace mpisec::shim
