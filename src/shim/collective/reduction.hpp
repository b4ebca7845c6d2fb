// Operations of the program on packed elements: the MPI library does the arithmetic (local_reduction.hpp), with the operation and
// the datatype that the program named (MPI standard section 6.9).
#pragma once

#include <mpi.h>

#include <memory>

#include "fabric/fabric.hpp"
#include "shim/p2p/datatype.hpp"

namespace mpisec::shim {

/// MPI_ERR_OP when the operation is predefined and is not for elements of this type, as the MPI library says. `any`:
/// whether there are elements at all.
int check_operation(MPI_Datatype type, MPI_Op op, bool any);

/// A reduction of vectors of `bytes` bytes, each behind a flag that says whether all vectors that went into it are equal.
inline constexpr std::size_t equality_flag_bytes = 8;
std::unique_ptr<fabric::Reduction> make_equality(std::size_t bytes);

/// Null when MPI does not know the operation. Keeps both handles good until it is destroyed.
std::unique_ptr<fabric::Reduction> make_reduction(MPI_Datatype type, const TypeFacts& facts, MPI_Op op);

/// MPI_Op_free: an operation that the program frees may still be in use.
int Op_free(MPI_Op* op);

}  // namespace mpisec::shim
