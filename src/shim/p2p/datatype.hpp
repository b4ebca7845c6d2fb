// What sealing needs to know of a datatype (M8): its size, and whether its elements are one run of bytes.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shim/pmpi/constants.hpp"
#include "shim/process/process.hpp"
#include "shim/runtime/device.hpp"

namespace mpisec::shim {

struct TypeFacts {
    std::size_t size = 0;     ///< bytes of one element's data
    bool contiguous = false;  ///< count elements at buf are count * size bytes at buf, in order
    bool padded = false;      ///< MPI_Pack may leave bytes of an element unwritten (Open MPI's long double)
    bool device = false;  ///< set by buffer_facts: the buffer is in a GPU's memory, and so not `contiguous`
};

/// Types that this thread used last; they save the look-up. Stale once any type was freed (generation).
struct RecentType {
    MPI_Datatype type;
    std::uint64_t generation;
    TypeFacts facts;
};
inline constexpr std::size_t recent_types = 8;
extern constinit thread_local RecentType recent_type[recent_types];
inline constexpr std::atomic<std::uint64_t>& type_generation = process.type_generation;
bool find_type_facts(MPI_Datatype type, RecentType& recent, TypeFacts& facts);

/// Cached per handle until MPI_Type_free. False when MPI does not know the type. The usual look-up takes no
/// lock.
inline bool type_facts(MPI_Datatype type, TypeFacts& facts) {
    const auto bits = (std::uintptr_t)type;
    RecentType& recent = recent_type[(bits ^ (bits >> 7) ^ (bits >> 12)) % recent_types];
    if (recent.type != type || recent.generation != type_generation.load(std::memory_order_relaxed))
        [[unlikely]]
        return find_type_facts(type, recent, facts);
    facts = recent.facts;
    return true;
}

/// Whether MPI_DATATYPE_NULL stands for no data: MPICH and its kin take it for messages of no elements.
inline bool is_no_data(MPI_Count count, MPI_Datatype type) {
#ifdef OPEN_MPI
    (void)count, (void)type;
    return false;
#else
    return count == 0 && type == constants.datatype_null;
#endif
}

/// The facts of what is sent or received.
template <class Spec>
bool facts_of(const Spec& spec, TypeFacts& facts) {
    if (type_facts(spec.type, facts)) [[likely]]
        return true;
    return is_no_data(spec.count, spec.type) && type_facts(constants.byte, facts);
}

/// As type_facts() for elements at `buf`, which may be in a GPU's memory: then only pack() and unpack() may access them.
[[gnu::cold, gnu::noinline]] void note_device(const void* buf, MPI_Datatype type, TypeFacts& facts);
inline bool buffer_facts(const void* buf, MPI_Datatype type, TypeFacts& facts) {
    if (!type_facts(type, facts)) return false;
    if (device_is_possible()) [[unlikely]]
        note_device(buf, type, facts);
    return true;
}

/// count elements → count * size bytes, in type map order. Returns an MPI error code. Not limited to 2 GiB.
int pack(const void* buf, MPI_Count count, MPI_Datatype type, const TypeFacts& facts, std::uint8_t* to);

/// `bytes` bytes → elements at buf; a last partial element is filled as far as the bytes go.
int unpack(const std::uint8_t* from, std::size_t bytes, void* buf, MPI_Count count, MPI_Datatype type,
           const TypeFacts& facts);

/// Keeps a type usable after the program's MPI_Type_free, until release_type, for an operation under way. Returns the type.
MPI_Datatype keep_type(MPI_Datatype type);
void release_type(MPI_Datatype kept);

/// MPI_Type_free, which also ends what is cached of the type.
int Type_free(MPI_Datatype* type);

}  // namespace mpisec::shim
