#include "shim/p2p/datatype.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "shim/p2p/type_contents.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/many_elements.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {

struct TypeCache {
    /// Types that operations under way use, and how often the program has freed them since. The type itself, not a duplicate: a reduction
    /// function of the program's is given the handle that the program gave (MPI standard section 6.9.5), and MPI_Type_dup would call the
    /// copy functions of the type's attributes.
    struct Kept {
        int holders = 0;
        int frees = 0;  ///< more than one where MPI_Type_get_contents gave the program the same handle again
    };
    std::shared_mutex mutex;
    std::unordered_map<MPI_Datatype, TypeFacts> facts;
    std::unordered_map<MPI_Datatype, Kept> kept;
};

namespace {

/// True when elements of `type` lie one after the other without gaps and in order. Decided from how the type
/// was made: size and extent alone cannot tell a permuted indexed type from a contiguous one.
bool is_contiguous(MPI_Datatype type, std::size_t size) {
    MPI_Aint lower = 0, extent = 0;
    if (real.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS) return false;
    if (lower != 0 || extent != static_cast<MPI_Aint>(size)) return false;
    const TypeContents made(type);
    if (made.combiner == MPI_COMBINER_NAMED) return true;
    if (made.combiner != MPI_COMBINER_DUP && made.combiner != MPI_COMBINER_CONTIGUOUS) return false;
    TypeFacts of_inner;
    return !made.inner.empty() && type_facts(made.inner[0], of_inner) && of_inner.contiguous;
}

#if defined(OPEN_MPI)
/// Whether an element may contain a long double: Open MPI counts its padding as data, and does not always pack it. The standard's types of
/// at least 16 bytes are those that contain one, and double complex.
bool may_be_padded(MPI_Datatype type) {
    constexpr int smallest = 16;
    const TypeContents made(type);
    int size = 0;
    if (made.combiner == MPI_COMBINER_NAMED)
        return real.Type_size(type, &size) != MPI_SUCCESS || size >= smallest;
    return made.inner.empty() || std::ranges::any_of(made.inner, may_be_padded);
}
#endif

bool look_up(MPI_Datatype type, TypeFacts& facts) {
    TypeCache& cache = *process.types;
    {
        std::shared_lock lock(cache.mutex);
        auto found = cache.facts.find(type);
        if (found != cache.facts.end()) {
            facts = found->second;
            return true;
        }
    }
    if (type == constants.datatype_null) return false;
    MPI_Count size = 0;
    if (real.Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return false;
    facts.size = static_cast<std::size_t>(size);
    facts.contiguous = is_contiguous(type, facts.size);
#if defined(OPEN_MPI)
    facts.padded = !facts.contiguous && may_be_padded(type);
#endif
    std::unique_lock lock(cache.mutex);
    cache.facts[type] = facts;
    return true;
}

/// Calls `step(first element, elements)` for runs of elements whose packed size fits MPI's int arguments.
template <class Step>
int in_int_steps(MPI_Count count, std::size_t size, Step step) {
    const MPI_Count most =
        size == 0 ? INT_MAX : std::max<MPI_Count>(1, INT_MAX / static_cast<MPI_Count>(size));
    for (MPI_Count first = 0; first < count; first += most) {
        const MPI_Count elements = std::min(most, count - first);
        if (int code = step(first, static_cast<int>(elements)); code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

/// Presents MPI_BOTTOM with a type of absolute addresses as a buffer that is not null: MPICH 4.0 refuses to pack from or unpack to a null
/// pointer.
class FromBottom {
  public:
    FromBottom(const void* buf, MPI_Datatype type) : buf_(const_cast<void*>(buf)), type_(type) {
        if (buf) return;
        constexpr MPI_Aint away = 4096;
        const int one = 1;
        const MPI_Aint back = -away;
        MPI_Datatype moved;
        if (real.Type_create_hindexed(1, &one, &back, type, &moved) != MPI_SUCCESS) return;
        MPI_Aint lower = 0, extent = 0;
        real.Type_get_extent(type, &lower, &extent);
        real.Type_create_resized(moved, lower, extent, &type_);
        real.Type_free(&moved);
        real.Type_commit(&type_);
        buf_ = reinterpret_cast<void*>(away);
        made_ = true;
    }
    ~FromBottom() {
        if (made_) real.Type_free(&type_);
    }
    FromBottom(const FromBottom&) = delete;
    FromBottom& operator=(const FromBottom&) = delete;
    std::uint8_t* buf() const { return static_cast<std::uint8_t*>(buf_); }
    MPI_Datatype type() const { return type_; }

  private:
    void* buf_;
    MPI_Datatype type_;
    bool made_ = false;
};

/// Elements of a type, each `step` bytes after the one before.
template <class Byte>
struct Strided {
    Byte* first;
    MPI_Datatype type;
    MPI_Aint step;
};

/// Copies elements that are too large for MPI_Pack's int from one type to another, one at a time, by a message to oneself, which has no
/// such limit.
int copy_large(Strided<const std::uint8_t> from, Strided<std::uint8_t> to, MPI_Count count) {
    constexpr int tag = 1;  // not that of probe.cpp
    Guard guard;            // one thread's message must not meet another's receive
    for (MPI_Count i = 0; i < count; ++i) {
        const int code =
            real.Sendrecv(from.first + i * from.step, 1, from.type, 0, tag, to.first + i * to.step, 1,
                          to.type, 0, tag, state.private_self, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return code;
    }
    return MPI_SUCCESS;
}

/// The bytes that `count` elements at `buf` span, from the first to the last, gaps included.
struct Span {
    std::intptr_t first;  ///< offset from buf; may be negative
    std::size_t bytes;

    Span(MPI_Count count, MPI_Datatype type) {
        MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
        real.Type_get_extent(type, &lower, &extent);
        real.Type_get_true_extent(type, &true_lower, &true_extent);
        const MPI_Aint across = extent * static_cast<MPI_Aint>(count > 0 ? count - 1 : 0);
        first = true_lower + std::min<MPI_Aint>(across, 0);
        bytes = count > 0 ? static_cast<std::size_t>(true_extent + std::max(across, -across)) : 0;
    }
};

void* moved(const void* buf, std::intptr_t bytes) {
    return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(buf) + bytes);
}

int pack_from_device(const void* buf, MPI_Count count, MPI_Datatype type, std::uint8_t* to) {
    TypeFacts facts;
    if (!type_facts(type, facts)) return MPI_ERR_TYPE;
    if (facts.contiguous)
        return copy_from_device(to, buf, static_cast<std::size_t>(count) * facts.size) ? MPI_SUCCESS
                                                                                       : MPI_ERR_OTHER;
    const Span span(count, type);
    Buffer copy(span.bytes + 1);
    if (!copy_from_device(copy.data(), moved(buf, span.first), span.bytes)) return MPI_ERR_OTHER;
    return pack(moved(copy.data(), -span.first), count, type, facts, to);
}

/// Bytes between the elements are copied too, and copied back.
int unpack_to_device(const std::uint8_t* from, std::size_t bytes, void* buf, MPI_Count count,
                     MPI_Datatype type) {
    TypeFacts facts;
    if (!type_facts(type, facts)) return MPI_ERR_TYPE;
    if (facts.contiguous) return copy_to_device(buf, from, bytes) ? MPI_SUCCESS : MPI_ERR_OTHER;
    const Span span(count, type);
    Buffer copy(span.bytes + 1);
    void* const there = moved(buf, span.first);
    if (!copy_from_device(copy.data(), there, span.bytes)) return MPI_ERR_OTHER;
    const int code = unpack(from, bytes, moved(copy.data(), -span.first), count, type, facts);
    if (code != MPI_SUCCESS) return code;
    return copy_to_device(there, copy.data(), span.bytes) ? MPI_SUCCESS : MPI_ERR_OTHER;
}

}  // namespace

void note_device(const void* buf, MPI_Datatype type, TypeFacts& facts) {
    MPI_Aint lower = 0, extent = 0;  // for MPI_BOTTOM the address is in the type
    if (real.Type_get_true_extent(type, &lower, &extent) != MPI_SUCCESS) return;
    facts.device = ask_driver(moved(buf, lower));
    if (facts.device) facts.contiguous = false;
}

constinit thread_local RecentType recent_type[recent_types]{};

bool find_type_facts(MPI_Datatype type, RecentType& recent, TypeFacts& facts) {
    const std::uint64_t generation = type_generation.load(std::memory_order_relaxed);
    if (!look_up(type, facts)) return false;
    recent = {type, generation, facts};
    return true;
}

int pack(const void* buf, MPI_Count count, MPI_Datatype type, const TypeFacts& facts, std::uint8_t* to) {
    if (facts.size == 0) return MPI_SUCCESS;
    if (facts.device) [[unlikely]]
        return pack_from_device(buf, count, type, to);
    // Bytes that MPI_Pack does not write are sent all the same, and written at the receiver: they must not hold another message's data.
    if (facts.padded && count > 0) std::memset(to, 0, static_cast<std::size_t>(count) * facts.size);
    MPI_Aint lower = 0, extent = 0;
    real.Type_get_extent(type, &lower, &extent);
    const FromBottom from(buf, type);
    if (facts.size > INT_MAX)
        return copy_large({from.buf(), from.type(), extent},
                          {to, ManyElements(static_cast<MPI_Count>(facts.size), constants.byte).type(),
                           static_cast<MPI_Aint>(facts.size)},
                          count);
    return in_int_steps(count, facts.size, [&](MPI_Count first, int elements) {
        int position = 0;
        const int room = static_cast<int>(static_cast<std::size_t>(elements) * facts.size);
        return real.Pack(from.buf() + first * extent, elements, from.type(),
                         to + static_cast<std::size_t>(first) * facts.size, room, &position, self_comm());
    });
}

int unpack(const std::uint8_t* from, std::size_t bytes, void* buf, MPI_Count count, MPI_Datatype type,
           const TypeFacts& facts) {
    if (facts.size == 0 || bytes == 0) return MPI_SUCCESS;
    if (facts.device) [[unlikely]]
        return unpack_to_device(from, bytes, buf, count, type);
    MPI_Aint lower = 0, extent = 0;
    real.Type_get_extent(type, &lower, &extent);
    const FromBottom to(buf, type);
    const MPI_Count whole = std::min<MPI_Count>(count, static_cast<MPI_Count>(bytes / facts.size));
    if (facts.size > INT_MAX) {
        const ManyElements element(static_cast<MPI_Count>(facts.size), constants.byte);
        const auto step = static_cast<MPI_Aint>(facts.size);
        const std::size_t rest = whole < count ? bytes % facts.size : 0;
        int code = copy_large({from, element.type(), step}, {to.buf(), to.type(), extent}, whole);
        if (code != MPI_SUCCESS || rest == 0) return code;
        std::vector<std::uint8_t> last(facts.size);  // as below
        std::uint8_t* place = to.buf() + whole * extent;
        code = copy_large({place, to.type(), extent}, {last.data(), element.type(), step}, 1);
        std::memcpy(last.data(), from + static_cast<std::size_t>(whole) * facts.size, rest);
        return code == MPI_SUCCESS
                   ? copy_large({last.data(), element.type(), step}, {place, to.type(), extent}, 1)
                   : code;
    }
    int code = in_int_steps(whole, facts.size, [&](MPI_Count first, int elements) {
        int position = 0;
        const int size = static_cast<int>(static_cast<std::size_t>(elements) * facts.size);
        return real.Unpack(from + static_cast<std::size_t>(first) * facts.size, size, &position,
                           to.buf() + first * extent, elements, to.type(), self_comm());
    });
    const std::size_t rest = bytes - static_cast<std::size_t>(whole) * facts.size;
    if (code != MPI_SUCCESS || rest == 0 || whole >= count) return code;
    // A partial last element (MPI_Get_elements exists for it): complete it with what the buffer holds, then
    // unpack the whole.
    std::vector<std::uint8_t> element(facts.size);
    void* last = to.buf() + whole * extent;
    int position = 0;
    code =
        real.Pack(last, 1, to.type(), element.data(), static_cast<int>(facts.size), &position, self_comm());
    std::memcpy(element.data(), from + static_cast<std::size_t>(whole) * facts.size, rest);
    position = 0;
    if (code == MPI_SUCCESS)
        code = real.Unpack(element.data(), static_cast<int>(facts.size), &position, last, 1, to.type(),
                           self_comm());
    return code;
}

MPI_Datatype keep_type(MPI_Datatype type) {
    if (type == constants.datatype_null || is_predefined_type(type)) return type;
    TypeCache& cache = *process.types;
    std::unique_lock lock(cache.mutex);
    ++cache.kept[type].holders;
    return type;
}

void release_type(MPI_Datatype kept) {
    TypeCache& cache = *process.types;
    std::unique_lock lock(cache.mutex);
    const auto found = cache.kept.find(kept);
    if (found == cache.kept.end() || --found->second.holders > 0) return;
    const int frees = found->second.frees;
    cache.kept.erase(found);
    lock.unlock();
    for (int i = 0; i < frees; ++i) free_without_guard([type = kept]() mutable { Type_free(&type); });
}

int Type_free(MPI_Datatype* type) {
    if (type) {
        TypeCache& cache = *process.types;
        std::unique_lock lock(cache.mutex);
        if (const auto found = cache.kept.find(*type); found != cache.kept.end()) {
            ++found->second.frees;
            *type = constants.datatype_null;
            return MPI_SUCCESS;
        }
        cache.facts.erase(*type);
        type_generation.fetch_add(1, std::memory_order_relaxed);
    }
    return real.Type_free(type);
}

}  // namespace mpisec::shim
