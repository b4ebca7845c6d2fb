// One call of a collective on its way to the algorithm and back: the user's buffers as runs of bytes, and
// what has to be done with them when it has ended. MPI standard chapter 6.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <vector>

#include "coll/collective.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/counts.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/pool.hpp"

namespace mpisec::shim {

/// Elements in the user's memory.
struct Elements {
    void* start = nullptr;
    MPI_Count count = 0;
    MPI_Datatype type{};
};

/// The block of each rank (or neighbour) in a buffer.
using ElementBlocks = std::vector<Elements>;
ElementBlocks equal_blocks(const void* buf, MPI_Count each, MPI_Datatype type, int blocks);
ElementBlocks unequal_blocks(const void* buf, Counts counts, Displacements displacements, MPI_Datatype type,
                             int blocks);
ElementBlocks typed_blocks(const void* buf, Counts counts, Displacements bytes, const MPI_Datatype* types,
                           int blocks);

/// Making a plan only looks at the arguments; none of the user's data is read or written before load(). A
/// persistent collective loads and finishes its plan at every start. The first error sticks.
class CollectivePlan {
  public:
    CollectivePlan(const char* procedure, coll::Collective collective, MPI_Comm comm);
    ~CollectivePlan();
    CollectivePlan(const CollectivePlan&) = delete;
    CollectivePlan& operator=(const CollectivePlan&) = delete;

    /// Keeps the first error; MPI_SUCCESS is none.
    void note(int code) {
        if (error == MPI_SUCCESS) error = code;
    }
    bool good() const { return error == MPI_SUCCESS; }
    /// Calls the error handler for the error; returns the result of the MPI call.
    int raise() const { return raised_ ? error : shim::raise(comm, error, procedure); }
    /// MPI_ERR_ROOT unless `root` is a rank of the group of `size` ranks.
    bool check_root(int root, int size);
    /// Makes a reduction of `type` by `op`, which the plan keeps for the call. `any`: whether there are elements at all.
    void reduce(MPI_Datatype type, MPI_Op op, bool any);
    /// The reduction by MPIX_EQUAL: whether `own` is the same on all ranks. The result is an int at `result`, which is
    /// null where this rank gets none.
    void reduce_equality(const Elements& own, int* result);
    /// Notes the MPI library's error where send and receive buffer are the same, in those calls in which the library
    /// checks that. The call starts before it fails, so that the other ranks do not wait for this one.
    void forbid_same(const void* send, const void* receive, MPI_Count count);

    /// Bytes that the algorithm reads: the user's own memory, or a packed copy.
    fabric::Plaintext give(const Elements& elements);
    /// As long as these bytes would be; nobody reads them.
    fabric::Plaintext give_to_nobody(const Elements& elements);
    coll::Blocks give(const ElementBlocks& blocks);
    /// Room that the algorithm writes to: the user's own memory, or memory that is unpacked at the end.
    fabric::PlaintextBuffer take(const Elements& elements);
    /// Block `kept` (if any) already holds its data, which the algorithm can read too.
    coll::Blocks take(const ElementBlocks& blocks, int kept = -1);
    /// Memory that the algorithm reads and then overwrites: it begins with the bytes of `from`, and `to` gets the result.
    fabric::PlaintextBuffer change(const Elements& from, const Elements& to);
    /// A copy of `from`, none of which goes back to the user unless finish() does that.
    fabric::PlaintextBuffer scratch(const Elements& from);
    fabric::PlaintextBuffer scratch(std::size_t bytes);
    /// A packed copy of the blocks.
    coll::Blocks scratch(const ElementBlocks& blocks);
    /// Copies this rank's own block from elements to elements when the call starts. If it is too long, the call runs for the sake of the
    /// other ranks, and fails here.
    void copy(const Elements& from, const Elements& to);
    /// Unpacks a run of bytes to elements at the end.
    void unpack_later(fabric::Plaintext from, const Elements& to);
    /// `then` is called at the end, before the unpacking; it returns an MPI error code.
    void finally(std::function<int()> then) { last_ = std::move(then); }

    /// The call starts: copies to the plan's own memory what the algorithm reads from there.
    void load();
    /// The algorithm has ended without failure. Returns an MPI error code.
    int finish();

    const char* procedure;
    coll::Collective collective;
    Communicator* comm;
    coll::Call call;
    /// Ranks on the shadow communicator, in the order of the algorithm's ranks; empty: all.
    std::vector<int> participants;
    bool takes_part = true;
    int error = MPI_SUCCESS;

  private:
    struct Packing {
        Elements from;
        TypeFacts facts;
        std::uint8_t* to;
    };
    struct Unpacking {
        const std::uint8_t* from;
        std::size_t bytes;
        Elements to;
        TypeFacts facts;
    };
    void fill();
    Elements keep(const Elements& elements);  ///< with a type that stays valid after the user's MPI_Type_free
    bool facts_of(const Elements& elements, TypeFacts& facts);
    void pack(const Elements& elements, const TypeFacts& facts, std::uint8_t* to);
    coll::Blocks in_place(const ElementBlocks& blocks, const std::vector<TypeFacts>& facts) const;
    bool facts_of(const ElementBlocks& blocks, std::vector<TypeFacts>& facts, bool& contiguous);
    coll::Blocks packed(const ElementBlocks& blocks, const std::vector<TypeFacts>& facts);

    bool raised_ = false;
    int at_start_ = MPI_SUCCESS, at_end_ = MPI_SUCCESS;  ///< errors to note at that time
    struct Scratch {
        Buffer room;
        std::size_t bytes;
    };
    std::vector<Scratch> scratch_;
    std::vector<Packing> packings_;
    std::vector<std::pair<Elements, Elements>> copies_;
    std::vector<Unpacking> unpackings_;
    std::vector<MPI_Datatype> kept_types_;
    std::unique_ptr<fabric::Reduction> reduction_;
    std::function<int()> last_;
};

/// Plaintext that the program gave as const, for an algorithm's interface that also takes memory to write to.
inline fabric::PlaintextBuffer writable(fabric::Plaintext bytes) {
    return {const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

}  // namespace mpisec::shim
