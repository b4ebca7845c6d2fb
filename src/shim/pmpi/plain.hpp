// Calls to the real library with a count of MPI_Count: its int procedure where the count fits, else its _c variant. Where the library has none
// (Open MPI, MPICH before 4), all elements go as one of a larger type.
#pragma once

#include <mpi.h>

#include <climits>

#include "shim/pmpi/many_elements.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

template <class Small, class Buf, class... Rest>
int call_with_one(Small small, Buf buf, MPI_Count count, MPI_Datatype type, Rest... rest) {
    const ManyElements all(count, type);
    return small(buf, 1, all.type(), rest...);
}

template <class Small, class Big, class Buf, class... Rest>
int call_counted(Small small, Big big, Buf buf, MPI_Count count, Rest... rest) {
    if (count <= INT_MAX) return small(buf, static_cast<int>(count), rest...);
    if constexpr (!std::is_same_v<Big, std::nullptr_t>) {
        if (big) return big(buf, count, rest...);
    }
    if constexpr (sizeof...(Rest) > 0)
        return call_with_one(small, buf, count, rest...);
    else
        return MPI_ERR_COUNT;  // of bytes (MPI_Buffer_attach)
}

// Both variants of a procedure, as the first two arguments of call_counted.
#ifdef OPEN_MPI
#define MPISEC_BOTH(name) ::mpisec::shim::real.name, nullptr
#else
#define MPISEC_BOTH(name) ::mpisec::shim::real.name, ::mpisec::shim::real.name##_c
#endif

}  // namespace mpisec::shim
