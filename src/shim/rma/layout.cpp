#include "shim/rma/layout.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <unordered_map>

#include "base/bytes.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/rma/message.hpp"

namespace mpisec::shim::rma {
namespace {

/// Of types with gaps: what finding their runs may take.
constexpr std::size_t most_extent = std::size_t{1} << 30, most_data = std::size_t{1} << 28;

/// Runs of a type with gaps. The MPI library is asked, for every way to make a type, also those to come: what
/// it packs from memory whose bytes say where they are tells where each byte of the data is. One byte says 8
/// bits of that, so it is asked again for the next ones.
bool find_runs(MPI_Datatype type, const TypeFacts& facts, std::vector<Run>& runs) {
    MPI_Aint lower = 0, extent = 0;
    if (real.Type_get_true_extent(type, &lower, &extent) != MPI_SUCCESS || extent <= 0) return false;
    const auto room = static_cast<std::size_t>(extent);
    if (room > most_extent || facts.size > most_data) return false;
    std::vector<std::uint8_t> memory(room), packed(facts.size);
    std::vector<std::uint32_t> places(facts.size);
    auto* at = reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::intptr_t>(memory.data()) - lower);
    for (unsigned bits = 0; bits == 0 || (room - 1) >> bits != 0; bits += 8) {
        for (std::size_t i = 0; i < room; ++i) memory[i] = static_cast<std::uint8_t>(i >> bits);
        if (pack(at, 1, type, facts, packed.data()) != MPI_SUCCESS) return false;
        for (std::size_t i = 0; i < packed.size(); ++i)
            places[i] |= static_cast<std::uint32_t>(packed[i]) << bits;
    }
    if (facts.padded) {  // bytes that MPI_Pack leaves out: each lies behind the one before
        std::ranges::fill(memory, std::uint8_t{0xff});
        if (pack(at, 1, type, facts, packed.data()) != MPI_SUCCESS) return false;
        for (std::size_t i = 1; i < packed.size(); ++i)
            if (packed[i] == 0) places[i] = places[i - 1] + 1;
    }
    for (std::uint32_t place : places) {
        const std::int64_t offset = lower + static_cast<std::int64_t>(place);
        if (!runs.empty() && runs.back().offset + runs.back().bytes == offset)
            ++runs.back().bytes;
        else
            runs.push_back({offset, 1});
    }
    return true;
}

int combiner_of(MPI_Datatype type, int& integers, int& addresses, int& types) {
    int combiner = 0;
    return real.Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS
               ? combiner
               : MPI_UNDEFINED;
}

/// Adds the predefined types that `type` is made of.
void add_elements(MPI_Datatype type, std::vector<MPI_Datatype>& elements) {
    int integers = 0, addresses = 0, types = 0;
    const int combiner = combiner_of(type, integers, addresses, types);
    if (combiner == MPI_COMBINER_NAMED || types == 0) {
        if (std::ranges::find(elements, type) == elements.end()) elements.push_back(type);
        return;
    }
    std::vector<int> integer(static_cast<std::size_t>(integers) + 1);
    std::vector<MPI_Aint> address(static_cast<std::size_t>(addresses) + 1);
    std::vector<MPI_Datatype> inner(static_cast<std::size_t>(types));
    if (real.Type_get_contents(type, integers, addresses, types, integer.data(), address.data(),
                               inner.data()) != MPI_SUCCESS)
        return;
    for (MPI_Datatype& one : inner) {
        add_elements(one, elements);
        int ignored = 0;
        if (combiner_of(one, ignored, ignored, ignored) != MPI_COMBINER_NAMED)
            Type_free(&one);  // Type_get_contents gave us a reference
    }
}

std::shared_ptr<const TypeLayout> describe(MPI_Datatype type) {
    TypeFacts facts;
    if (!type_facts(type, facts)) return nullptr;
    auto described = std::make_shared<TypeLayout>();
    MPI_Aint lower = 0, extent = 0;
    if (real.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS) return nullptr;
    described->extent = extent;
    if (facts.contiguous && facts.size > 0)
        described->runs.push_back({0, static_cast<std::int64_t>(facts.size)});
    else if (facts.size > 0 && !find_runs(type, facts, described->runs))
        return nullptr;
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
    std::uint64_t generation = 0;  ///< of what is known
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
    // Finding out may itself free types that MPI_Type_get_contents gave: these are not the program's.
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
    int ignored = 0;
    if (type == constants.datatype_null || combiner_of(type, ignored, ignored, ignored) != MPI_COMBINER_NAMED)
        return constants.datatype_null;
    return type;
}

MPI_Op op_of_handle(std::int32_t handle) {
    for (MPI_Op op : constants.predefined_operations)
        if (shared_handle_of_op(op) == handle) return op;
    return constants.op_null;
}

}  // namespace mpisec::shim::rma
