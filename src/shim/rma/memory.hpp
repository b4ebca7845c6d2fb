// The memory that this process exposes in a window, and what operations do to it. Nothing here trusts what a
// message says: every byte is known to lie within the window before any is touched.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "shim/p2p/datatype.hpp"
#include "shim/rma/layout.hpp"
#include "shim/rma/message.hpp"
#include "shim/rma/node_lock.hpp"

namespace mpisec::shim::rma {

/// How an accumulate combines elements: what its header names, checked.
struct Arithmetic {
    MPI_Op op{};
    MPI_Datatype element{};
    TypeFacts facts{};        ///< of the element
    int error = MPI_SUCCESS;  ///< an MPI error class
};
/// Empty for other kinds of requests.
Arithmetic arithmetic_of(const Header& header);

class WindowMemory {
  public:
    WindowMemory() = default;
    /// `lock`: the lock of memory that ranks of this node share; null for other memory.
    WindowMemory(void* base, MPI_Aint size, MPI_Aint unit, NodeLock* lock = nullptr)
        : base_(static_cast<std::uint8_t*>(base)), size_(size), unit_(unit), lock_(lock) {}
    /// MPI_Win_create_dynamic
    static WindowMemory dynamic() {
        WindowMemory memory;
        memory.dynamic_ = true;
        return memory;
    }
    bool is_dynamic() const { return dynamic_; }
    void* base() const { return base_; }

    /// False when it overlaps memory that is attached, or reaches past the end of the address space. Empty memory overlaps nothing.
    bool attach(void* base, MPI_Aint size);
    /// False when no attached memory begins there.
    bool detach(const void* base);

    /// Where elements at the displacement lie; `inside` is false when some of their data is not in the window.
    struct Place {
        std::uint8_t* at = nullptr;
        bool inside = false;
    };
    Place locate(std::int64_t displacement, const Layout& layout) const;

    /// Does to the memory what the header says and, if it is of a kind that fetches, writes the old contents to
    /// `fetched`. `data`: header.bytes bytes of the origin's data, or twice as many: the value to compare, then the one to swap in.
    /// Returns an MPI error class; on an error nothing was touched, unless the error is that a GPU's driver failed.
    int perform(const Header& header, const Layout& layout, const Arithmetic& arithmetic,
                const std::uint8_t* data, std::uint8_t* fetched) const;

  private:
    bool attached(Wide first, Wide end) const;

    std::uint8_t* base_ = nullptr;
    MPI_Aint size_ = 0;
    MPI_Aint unit_ = 1;
    NodeLock* lock_ = nullptr;
    bool dynamic_ = false;
    std::map<std::uintptr_t, std::uintptr_t> regions_;  ///< attached: address of the first byte, end
    /// Attached without a byte: such memory may be attached any number of times.
    std::multiset<std::uintptr_t> empty_regions_;
};

/// Whether data of this layout lies between the bounds of a window of `size` bytes.
bool fits(std::int64_t displacement, MPI_Aint unit, MPI_Aint size, const Layout& layout);
/// Bytes of data that arrive with a request.
std::uint64_t payload_of(const Header& header);
/// Bytes of data in its answer.
std::uint64_t answer_of(const Header& header);
/// Whether a request of this kind is about data in the target's memory.
inline bool moves_data(Kind kind) {
    return kind <= Kind::compare_and_swap;
}

}  // namespace mpisec::shim::rma
