#include "shim/rma/layout.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <unordered_map>

#include "base/bytes.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/p2p/type_contents.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/message.hpp"

namespace mpisec::shim::rma {
namespace {

/// The most runs of one element: more would take gigabytes to describe.
constexpr std::size_t most_runs = std::size_t{1} << 26;
/// The most runs of several elements of which the last one is cut off: they are sent one by one.
constexpr std::size_t most_runs_of_a_part = std::size_t{1} << 20;

/// The named type with the same values as a predefined one: the handles of types that MPI_Type_create_f90_real and the like return may
/// differ between processes.
MPI_Datatype named(MPI_Datatype type, int combiner) {
    int type_class = MPI_UNDEFINED;
    if (combiner == MPI_COMBINER_F90_REAL) type_class = MPI_TYPECLASS_REAL;
    if (combiner == MPI_COMBINER_F90_COMPLEX) type_class = MPI_TYPECLASS_COMPLEX;
    if (combiner == MPI_COMBINER_F90_INTEGER) type_class = MPI_TYPECLASS_INTEGER;
    int size = 0;
    if (type_class == MPI_UNDEFINED || real.Type_size(type, &size) != MPI_SUCCESS) return type;
    MPI_Datatype found = constants.datatype_null;
    return real.Type_match_size(type_class, size, &found) == MPI_SUCCESS ? found : constants.datatype_null;
}

/// Whether block `i` of a type has no data. Then it adds nothing to the type map (MPI standard section 5.1), of whatever type it is.
bool is_empty_block(const TypeContents& made, std::size_t i) {
    if (made.combiner == MPI_COMBINER_STRUCT && made.integer(1 + i) == 0) return true;
    TypeFacts facts;
    return type_facts(made.inner[i], facts) && facts.size == 0;
}

/// Adds the predefined types that the data of `type` is made of.
void add_elements(MPI_Datatype type, std::vector<MPI_Datatype>& elements) {
    const TypeContents made(type);
    if (made.inner.empty()) {
        type = named(type, made.combiner);
        if (std::ranges::find(elements, type) == elements.end()) elements.push_back(type);
        return;
    }
    for (std::size_t i = 0; i < made.inner.size(); ++i)
        if (!is_empty_block(made, i)) add_elements(made.inner[i], elements);
}

std::shared_ptr<const TypeLayout> describe(MPI_Datatype type) {
    auto runs = type_map(type, most_runs);
    MPI_Aint lower = 0, extent = 0;
    if (!runs || real.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS) return nullptr;
    auto described = std::make_shared<TypeLayout>();
    described->runs = std::move(*runs);
    described->extent = extent;
    std::vector<MPI_Datatype> elements;
    add_elements(type, elements);
    described->element = elements.size() == 1 ? elements[0] : constants.datatype_null;
    return described;
}

}  // namespace
}  // namespace mpisec::shim::rma

namespace mpisec::shim {

struct TypeLayouts {
    std::unordered_map<MPI_Datatype, std::shared_ptr<const rma::TypeLayout>> known;
    std::uint64_t generation = 0;  ///< the type_generation for which `known` holds
};

}  // namespace mpisec::shim

namespace mpisec::shim::rma {

std::shared_ptr<const TypeLayout> layout_of(MPI_Datatype type) {
    if (type == constants.datatype_null) return nullptr;
    TypeLayouts& layouts = *process.type_layouts;
    const std::uint64_t generation = type_generation.load(std::memory_order_relaxed);
    if (layouts.generation != generation) layouts.known.clear();
    layouts.generation = generation;
    if (auto found = layouts.known.find(type); found != layouts.known.end()) return found->second;
    auto described = describe(type);
    // Describing may itself free types that MPI_Type_get_contents returned: these are not the program's.
    layouts.generation = type_generation.load(std::memory_order_relaxed);
    if (described) layouts.known[type] = described;
    return described;
}

void describe_elements(const TypeLayout& type, MPI_Count count, Layout& layout) {
    layout.runs.assign(type.runs.begin(), type.runs.end());
    layout.count = static_cast<std::uint64_t>(count);
    layout.extent = type.extent;
    if (count == 0) layout.runs.clear();
    if (layout.runs.empty()) layout.count = 0, layout.extent = 0;
    const Wide bytes = layout.bytes();
    if (!layout.one_run() || bytes > std::numeric_limits<std::int64_t>::max()) return;
    layout.runs[0].bytes = static_cast<std::int64_t>(bytes);
    layout.count = 1, layout.extent = 0;
}

int shorten(Layout& layout, std::uint64_t bytes) {
    if (bytes == 0) {
        layout = {};
        return MPI_SUCCESS;
    }
    std::uint64_t of_one = 0;
    for (const Run& run : layout.runs) of_one += static_cast<std::uint64_t>(run.bytes);
    const std::uint64_t whole = bytes / of_one, rest = bytes % of_one;
    if (rest == 0) {
        layout.count = whole;
        return MPI_SUCCESS;
    }
    if (Wide{whole + 1} * layout.runs.size() > most_runs_of_a_part) return MPI_ERR_TYPE;
    std::vector<Run> runs;
    std::uint64_t left = bytes;
    for (std::uint64_t i = 0; i <= whole; ++i)
        for (const Run& run : layout.runs) {
            const std::uint64_t here = std::min(left, static_cast<std::uint64_t>(run.bytes));
            if (here == 0) break;
            const Wide offset = Wide{i} * layout.extent + run.offset;
            if (offset < std::numeric_limits<std::int64_t>::min() ||
                offset > std::numeric_limits<std::int64_t>::max())
                return MPI_ERR_RMA_RANGE;
            runs.push_back({static_cast<std::int64_t>(offset), static_cast<std::int64_t>(here)});
            left -= here;
        }
    layout.runs = std::move(runs);
    layout.count = 1, layout.extent = 0;
    return MPI_SUCCESS;
}

Wide Layout::bytes() const {
    Wide sum = 0;
    for (const Run& run : runs) sum += run.bytes;
    return sum * static_cast<Wide>(count);
}

Wide Layout::first_of_many() const {
    if (count == 0 || runs.empty()) return 0;
    Wide lowest = runs[0].offset;
    for (const Run& run : runs) lowest = std::min<Wide>(lowest, run.offset);
    const Wide last = static_cast<Wide>(count - 1) * extent;
    return lowest + std::min<Wide>(last, 0);
}

Wide Layout::end_of_many() const {
    if (count == 0 || runs.empty()) return 0;
    Wide highest = Wide{runs[0].offset} + runs[0].bytes;
    for (const Run& run : runs) highest = std::max(highest, Wide{run.offset} + run.bytes);
    const Wide last = static_cast<Wide>(count - 1) * extent;
    return highest + std::max<Wide>(last, 0);
}

void Layout::gather(const std::uint8_t* at, std::uint8_t* to) const {
    for_each_run([&](std::int64_t offset, std::size_t bytes) {
        std::memcpy(to, at + offset, bytes);
        to += bytes;
    });
}

void Layout::scatter(const std::uint8_t* from, std::uint8_t* at) const {
    for_each_run([&](std::int64_t offset, std::size_t bytes) {
        std::memcpy(at + offset, from, bytes);
        from += bytes;
    });
}

void write(std::span<const Run> runs, std::uint8_t* to) {
    for (const Run& run : runs) {
        store_le(to, run.offset);
        store_le(to + 8, run.bytes);
        to += run_bytes;
    }
}

bool read(std::vector<Run>& runs, std::size_t count, const std::uint8_t* from) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
    runs.resize(count);
    for (Run& run : runs) {
        run = {load_le<std::int64_t>(from), load_le<std::int64_t>(from + 8)};
        if (run.bytes <= 0 || run.bytes > most || run.offset < -most || run.offset > most) return false;
        from += run_bytes;
    }
    return true;
}

std::int32_t shared_handle(MPI_Datatype type) {
#if defined(OPEN_MPI)
    return real.Type_c2f(type);
#else
    return static_cast<std::int32_t>((std::intptr_t)type);
#endif
}

std::int32_t shared_handle_of_op(MPI_Op op) {
#if defined(OPEN_MPI)
    return real.Op_c2f(op);
#else
    return static_cast<std::int32_t>((std::intptr_t)op);
#endif
}

MPI_Datatype type_of_handle(std::int32_t handle) {
#if defined(OPEN_MPI)
    const MPI_Datatype type = real.Type_f2c(handle);
#else
    const auto type = (MPI_Datatype)(std::intptr_t)handle;
#endif
    if (type == constants.datatype_null || !is_named(type)) return constants.datatype_null;
    return type;
}

MPI_Op op_of_handle(std::int32_t handle) {
    for (MPI_Op op : constants.predefined_operations)
        if (shared_handle_of_op(op) == handle) return op;
    return constants.op_null;
}

}  // namespace mpisec::shim::rma
