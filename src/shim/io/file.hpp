// A file whose ranks are on several nodes. Each rank opens it through the MPI library by itself, on
// MPI_COMM_SELF, so that the library has no other process to send anything to. The program has the handle of that file,
// which also has the view, the individual pointer, the hints and the error handler. What ranks must agree on, and the
// shared file pointer, travel in sealed messages on a private communicator (docs/protocol.md, "Files").
//
//   files.cpp              open, close, view, and the other procedures about the file as a whole
//   shared_pointer.cpp     access with the shared file pointer, in any order or in that of ranks
//   collective_access.cpp  access of all ranks together
//   aggregation.cpp        where the ranks' data is interleaved: exchanges it first
//   view.cpp               a view as runs of bytes
#pragma once

#include <mpi.h>

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "shim/collective/collectives.hpp"
#include "shim/io/view.hpp"
#include "shim/pmpi/plain.hpp"
#include "shim/rma/window.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim::io {

/// The rank that keeps the shared pointer, and does once what concerns the file and not a rank's access to it.
inline constexpr int keeper = 0;

struct File {
    MPI_File handle{};                    ///< the program's; MPI_FILE_NULL until it is open
    std::shared_ptr<rma::Window> window;  ///< exposes the shared pointer, on the file's private communicator
    std::string name;
    std::string place;  ///< what to delete on close: the same in every working directory
    int amode = 0;
    bool broken = false;       ///< an exchange between its ranks has failed
    MPI_File bytes{};          ///< the library's file once more, with all bytes as its view
    MPI_Count etype_size = 1;  ///< bytes of data in an etype
    std::shared_ptr<const View> view = std::make_shared<View>();  ///< null: its runs are not known
    bool atomic = false;
    bool sieving_is_ours = false;  ///< the hint romio_ds_write is MPIsec's
    std::string list_of_nodes;     ///< the hint cb_config_list, which the library does not get
    int wished_aggregators = 0;    ///< the hint cb_nodes, which a file of one rank cannot show
    std::int32_t wish_to_write = 0, wish_to_read = 0;  ///< hints: 1 aggregate, -1 do not
    std::int64_t window_bytes = 0;                     ///< bytes of an aggregator at a time
    std::int64_t pointer = 0;  ///< the shared one, in etypes; on the keeper, under the Guard

    struct Split {
        bool begun = false;
        MPI_Status status{};
    };
    Split split;  ///< between MPI_File_…_begin and _end

    MPI_Comm comm() const { return window->comm; }
    std::size_t ranks() const { return static_cast<std::size_t>(window->size()); }
    bool keeps() const { return window->rank == keeper; }
    bool sequential() const { return (amode & MPI_MODE_SEQUENTIAL) != 0; }
    /// How many etypes hold so many bytes; none where an etype has no data.
    std::int64_t etypes_in(std::int64_t size) const { return etype_size > 0 ? size / etype_size : 0; }
};

/// Null for a file that does not cross nodes.
std::shared_ptr<File> find(MPI_File file);

int run_or_give_up(File& file, std::unique_ptr<CollectivePlan> plan);

/// Runs a collective of the file's ranks. It is abandoned as soon as one of them has met an integrity error in an
/// exchange: that rank takes no part in what follows, and no rank waits for it. `memory`: what the collective reads and
/// writes; MPI may still do so after it was abandoned, so the memory then stays and the pointer is null. Returns an error
/// code without raising it.
template <class Memory>
int collect(File& file, std::unique_ptr<Memory>& memory, std::unique_ptr<CollectivePlan> plan) {
    const int code = run_or_give_up(file, std::move(plan));
    if (code != MPI_SUCCESS) (void)memory.release();
    return code;
}

// Called by all ranks of a file, in the same order. They return this rank's `code` where that is an error, which was
// already raised; otherwise they return, and raise, the error class of another rank or the error of the exchange.

/// Waits until every rank is here. MPI_ERR_NOT_SAME where the ranks' values differ.
int agree(const char* call, File& file, int code, std::int64_t value = 0, std::int64_t other_value = 0);
/// The result of what the keeper has done for all ranks; `code`: on the keeper, that result.
int hear_of_keeper(const char* call, File& file, int code);
/// The same without raising anything.
int agree_unraised(const char* call, File& file, int code, std::int64_t value = 0,
                   std::int64_t other_value = 0);
int hear_of_keeper_unraised(const char* call, File& file, int code);

/// An access in two calls: the first does it, the second returns its status.
template <class Access>
int begin_split(const char* call, MPI_File fh, Access access) {
    const auto file = find(fh);
    if (file->split.begun) return raise_on_file(fh, MPI_ERR_OTHER, call);
    const int code = access(call, *file, &file->split.status);
    file->split.begun = code == MPI_SUCCESS;
    return code;
}
int end_split(const char* call, MPI_File fh, MPI_Status* status);

/// Reads the hints from the library, which may have changed.
void learn_hints(File& file);

/// Elements of the program's memory: to be read into (void*) or written (const void*).
template <class Buf>
struct Elements {
    Buf buf;
    MPI_Count count;
    MPI_Datatype type;
};

/// Where the program's `call` accesses a file.
struct Place {
    const char* call;
    const File& file;
    MPI_Offset offset;  ///< in etypes
};

/// The library's access. `small`, `big`: both variants of the procedure; `last`: its last argument.
template <class Small, class Big, class Buf, class Last>
int access_at(Small small, Big big, const Place& place, const Elements<Buf>& memory, Last last) {
    const auto& [call, file, offset] = place;
    const auto& [buf, count, type] = memory;
    if (count <= INT_MAX) return small(file.handle, offset, buf, static_cast<int>(count), type, last);
    if constexpr (!std::is_same_v<Big, std::nullptr_t>) {
        if (big) return big(file.handle, offset, buf, count, type, last);
    }
    return raise_on_file(file.handle, MPI_ERR_COUNT, call);
}

}  // namespace mpisec::shim::io
