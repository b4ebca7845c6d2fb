// A one-sided operation, as the program's arguments describe it (MPI standard section 12.3).
#pragma once

#include <mpi.h>

#include "shim/rma/window.hpp"

namespace mpisec::shim::rma {

struct Access {
    Kind kind{};
    Elements origin{};  ///< read, or written by a get
    Elements result{};  ///< where fetched data goes, if not to `origin`
    const void* compare = nullptr;
    int target = 0;
    MPI_Aint displacement = 0;
    MPI_Count count = 0;
    MPI_Datatype type{};
    MPI_Op op{};
    bool accumulates = false;
    bool of_one_element = false;  ///< one element of a predefined type
    bool for_request = false;
};

inline Elements elements(const void* buf, MPI_Count count, MPI_Datatype type) {
    return {const_cast<void*>(buf), count, type};
}

inline Access put(const Elements& origin, int target, MPI_Aint disp, MPI_Count count, MPI_Datatype type) {
    return {.kind = Kind::put,
            .origin = origin,
            .target = target,
            .displacement = disp,
            .count = count,
            .type = type};
}

inline Access accumulation(const Elements& origin, int target, MPI_Aint disp, MPI_Count count,
                           MPI_Datatype type, MPI_Op op) {
    Access access = put(origin, target, disp, count, type);
    access.kind = Kind::accumulate;
    access.op = op;
    access.accumulates = true;
    return access;
}

inline Access fetching(Access access, const Elements& result) {
    access.kind = Kind::get_accumulate;
    access.result = result;
    return access;
}

/// Where the fetched data goes.
inline const Elements& result_of(const Access& access) {
    return access.kind == Kind::get ? access.origin : access.result;
}

/// Describes the operation in window.described and checks it against the window; returns an MPI error class.
int prepare(Window& window, const Access& access);

}  // namespace mpisec::shim::rma
