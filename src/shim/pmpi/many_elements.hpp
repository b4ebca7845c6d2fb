// Any number of elements as one element of a type made for it, for procedures that count in int.
#pragma once

#include <mpi.h>

#include "shim/pmpi/real.hpp"

namespace mpisec::shim {

/// A message that has begun keeps the type for as long as it needs it (MPI standard section 5.1.9).
class ManyElements {
  public:
    ManyElements(MPI_Count count, MPI_Datatype type) {
        constexpr MPI_Count piece = MPI_Count{1} << 30;
        const auto pieces = static_cast<int>(count / piece), rest = static_cast<int>(count % piece);
        MPI_Aint lower = 0, extent = 0;
        real.Type_get_extent(type, &lower, &extent);
        int lengths[2] = {1, rest};
        MPI_Aint places[2] = {0, static_cast<MPI_Aint>(count - rest) * extent};
        MPI_Datatype one, types[2] = {type, type};
        real.Type_contiguous(static_cast<int>(piece), type, &one);
        real.Type_contiguous(pieces, one, &types[0]);
        real.Type_create_struct(2, lengths, places, types, &type_);
        real.Type_commit(&type_);
        real.Type_free(&types[0]);
        real.Type_free(&one);
    }
    ~ManyElements() { real.Type_free(&type_); }
    ManyElements(const ManyElements&) = delete;
    ManyElements& operator=(const ManyElements&) = delete;
    MPI_Datatype type() const { return type_; }

  private:
    MPI_Datatype type_{};
};

}  // namespace mpisec::shim
