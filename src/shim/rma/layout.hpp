// Where the data of a datatype lies, in a form that another process understands: runs of bytes, in the order of the
// type map.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "shim/p2p/type_map.hpp"

namespace mpisec::shim::rma {

/// Wide enough for every product of a displacement, a count and an extent.
using Wide = __int128;

/// `count` elements, each `extent` bytes after the one before.
struct Layout {
    std::vector<Run> runs;
    std::uint64_t count = 0;
    std::int64_t extent = 0;

    Wide bytes() const;
    /// The offsets of the first byte and of the byte behind the last one; both 0 when there is no data.
    Wide first() const { return is_single() ? Wide{runs[0].offset} : first_of_many(); }
    Wide end() const { return is_single() ? Wide{runs[0].offset} + runs[0].bytes : end_of_many(); }
    /// Whether all data is one run; its offset is runs[0]'s then.
    bool one_run() const { return runs.size() == 1 && (count == 1 || runs[0].bytes == extent); }

    template <class Each>
    void for_each_run(Each each) const {
        for (std::uint64_t i = 0; i < count; ++i)
            for (const Run& run : runs)
                each(static_cast<std::int64_t>(i) * extent + run.offset, static_cast<std::size_t>(run.bytes));
    }
    void gather(const std::uint8_t* at, std::uint8_t* to) const;
    void scatter(const std::uint8_t* from, std::uint8_t* at) const;

  private:
    bool is_single() const { return count == 1 && runs.size() == 1; }
    Wide first_of_many() const;
    Wide end_of_many() const;
};

void write(std::span<const Run> runs, std::uint8_t* to);
/// False when a run is empty or reaches farther than any memory.
bool read(std::vector<Run>& runs, std::size_t count, const std::uint8_t* from);

/// The layout of one element of a datatype.
struct TypeLayout {
    std::vector<Run> runs;
    std::int64_t extent = 0;
    MPI_Datatype element{};  ///< the predefined type of all its data; MPI_DATATYPE_NULL: there are several
};
/// Cached until the program frees a type. Null for a type that MPI does not know, or that is too large to be
/// described. Under the Guard.
std::shared_ptr<const TypeLayout> layout_of(MPI_Datatype type);

/// Describes `count` elements, as one element where they are one run. Reuses the memory that `layout` has.
void describe_elements(const TypeLayout& type, MPI_Count count, Layout& layout);
/// Leaves the first `bytes` bytes of the data. Returns an MPI error class when that takes too many runs, or they reach too far.
int shorten(Layout& layout, std::uint64_t bytes);

/// The handle of a predefined type or operation that is the same in all processes of the job.
std::int32_t shared_handle(MPI_Datatype type);
std::int32_t shared_handle_of_op(MPI_Op op);
/// The predefined type; MPI_DATATYPE_NULL when it is none.
MPI_Datatype type_of_handle(std::int32_t handle);
/// The predefined operation; MPI_OP_NULL when it is none.
MPI_Op op_of_handle(std::int32_t handle);

}  // namespace mpisec::shim::rma
