// Where the data of a datatype lies (its type map, MPI standard section 5.1), as runs of bytes.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mpisec::shim {

struct Run {
    std::int64_t offset;  ///< from the address of the element
    std::int64_t bytes;
    bool operator==(const Run&) const = default;
};

/// The runs of one element, in the order of the type map; adjacent runs are joined. Nothing for a type that MPI does not know, or that has
/// more than `most` runs. Takes time and memory in proportion to the runs, not to what they span, except for types that are made in a way
/// that is not known here.
std::optional<std::vector<Run>> type_map(MPI_Datatype type, std::size_t most);

}  // namespace mpisec::shim
