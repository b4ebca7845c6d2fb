// What sealing needs to know of a datatype (M8): its size, and whether its elements are one run of bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace mpisec::shim {

struct TypeFacts {
    std::size_t size = 0;     ///< bytes of one element's data
    bool contiguous = false;  ///< count elements at buf are count * size bytes at buf, in order
};

/// Cached per handle until MPI_Type_free. False when MPI does not know the type.
bool type_facts(MPI_Datatype type, TypeFacts& facts);

/// count elements → count * size bytes, in type map order. Returns an MPI error code. Not limited to 2 GiB.
int pack(const void* buf, MPI_Count count, MPI_Datatype type, const TypeFacts& facts, std::uint8_t* to);

/// `bytes` bytes → elements at buf; a last partial element is filled as far as the bytes go.
int unpack(const std::uint8_t* from, std::size_t bytes, void* buf, MPI_Count count, MPI_Datatype type,
           const TypeFacts& facts);

/// A handle that stays good after the user's MPI_Type_free, for a pending receive. Predefined types are
/// returned as they are.
MPI_Datatype keep_type(MPI_Datatype type);
void release_type(MPI_Datatype kept, MPI_Datatype original);

}  // namespace mpisec::shim
