#include "shim/p2p/type_map.hpp"

#include <algorithm>

#include "shim/p2p/datatype.hpp"
#include "shim/p2p/type_contents.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {
namespace {

using Runs = std::vector<Run>;

MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint lower = 0, extent = 0;
    real.Type_get_extent(type, &lower, &extent);
    return extent;
}

/// Collects runs in the order of a type map.
class Collector {
  public:
    explicit Collector(std::size_t most) : most_(most) {}
    /// Adds the runs of `inner` `count` times, each time `extent` after the time before, the first at `at`.
    void add(const Runs& inner, std::int64_t extent, std::int64_t count, std::int64_t at) {
        if (inner.size() == 1 && inner[0].bytes == extent && count > 0)
            return add({at + inner[0].offset, count * extent});
        for (std::int64_t i = 0; i < count && !too_many() && !inner.empty(); ++i)
            for (const Run& run : inner) add({at + i * extent + run.offset, run.bytes});
    }
    bool too_many() const { return runs_.size() > most_; }
    std::optional<Runs> take() {
        if (too_many()) return std::nullopt;
        return std::move(runs_);
    }

  private:
    void add(const Run& run) {
        if (!runs_.empty() && runs_.back().offset + runs_.back().bytes == run.offset)
            runs_.back().bytes += run.bytes;
        else
            runs_.push_back(run);
    }
    const std::size_t most_;
    Runs runs_;
};

/// Finds the runs from the arguments of the type's constructor, and those of the types that it is made of.
class Description {
  public:
    explicit Description(std::size_t most) : most_(most) {}
    std::optional<Runs> of(MPI_Datatype type) const;

  private:
    std::optional<Runs> of_blocks(const TypeContents& made, const Runs& inner, std::int64_t extent) const;
    std::optional<Runs> of_struct(const TypeContents& made) const;
    std::optional<Runs> of_subarray(const TypeContents& made, Runs runs, std::int64_t extent) const;
    std::optional<Runs> of_darray(const TypeContents& made, Runs runs, std::int64_t extent) const;
    std::optional<Runs> by_packing(MPI_Datatype type, const TypeFacts& facts) const;

    const std::size_t most_;
};

/// Blocks of one inner type.
std::optional<Runs> Description::of_blocks(const TypeContents& made, const Runs& inner,
                                           std::int64_t extent) const {
    Collector all(most_);
    const std::int64_t count = made.integer(0);
    for (std::int64_t i = 0; i < count && !all.too_many(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto behind = static_cast<std::size_t>(count + i);
        switch (made.combiner) {
            case MPI_COMBINER_VECTOR:
                all.add(inner, extent, made.integer(1), i * made.integer(2) * extent);
                break;
            case MPI_COMBINER_HVECTOR:
                all.add(inner, extent, made.integer(1), i * made.address(0));
                break;
            case MPI_COMBINER_INDEXED:
                all.add(inner, extent, made.integer(1 + at), made.integer(1 + behind) * extent);
                break;
            case MPI_COMBINER_HINDEXED:
                all.add(inner, extent, made.integer(1 + at), made.address(at));
                break;
            case MPI_COMBINER_INDEXED_BLOCK:
                all.add(inner, extent, made.integer(1), made.integer(2 + at) * extent);
                break;
            default:  // MPI_COMBINER_HINDEXED_BLOCK
                all.add(inner, extent, made.integer(1), made.address(at));
        }
    }
    return all.take();
}

std::optional<Runs> Description::of_struct(const TypeContents& made) const {
    Collector all(most_);
    for (std::size_t i = 0; i < made.inner.size(); ++i) {
        const auto inner = of(made.inner[i]);
        if (!inner) return std::nullopt;
        all.add(*inner, extent_of(made.inner[i]), made.integer(1 + i), made.address(i));
    }
    return all.take();
}

/// The k-th of `dimensions` dimensions, counted from the one whose elements lie side by side to the one whose elements are farthest apart.
std::size_t dimension_by_nearness(std::size_t k, std::size_t dimensions, std::int64_t order) {
    return order == MPI_ORDER_FORTRAN ? k : dimensions - 1 - k;
}

std::optional<Runs> Description::of_subarray(const TypeContents& made, Runs runs, std::int64_t extent) const {
    const auto dimensions = static_cast<std::size_t>(made.integer(0));
    const std::int64_t order = made.integer(1 + 3 * dimensions);
    for (std::size_t k = 0; k < dimensions; ++k) {
        const std::size_t dimension = dimension_by_nearness(k, dimensions, order);
        const std::int64_t size = made.integer(1 + dimension);
        const std::int64_t part = made.integer(1 + dimensions + dimension);
        const std::int64_t first = made.integer(1 + 2 * dimensions + dimension);
        Collector all(most_);
        all.add(runs, extent, part, first * extent);
        auto collected = all.take();
        if (!collected) return std::nullopt;
        runs = std::move(*collected);
        extent *= size;
    }
    return runs;
}

/// One process's part of an array whose dimensions are each distributed (MPI standard section 5.1.4).
std::optional<Runs> Description::of_darray(const TypeContents& made, Runs runs, std::int64_t extent) const {
    const auto dimensions = static_cast<std::size_t>(made.integer(2));
    const auto argument = [&](std::size_t which, std::size_t dimension) {
        return made.integer(3 + which * dimensions + dimension);
    };
    // Processes are numbered in row-major order, whatever the order of the array is.
    std::vector<std::int64_t> place(dimensions);
    for (std::size_t dimension = dimensions, rank = static_cast<std::size_t>(made.integer(1));
         dimension-- > 0;) {
        const auto processes = static_cast<std::size_t>(argument(3, dimension));
        place[dimension] = static_cast<std::int64_t>(rank % processes);
        rank /= processes;
    }
    for (std::size_t k = 0; k < dimensions; ++k) {
        const std::size_t dimension = dimension_by_nearness(k, dimensions, argument(4, 0));
        const std::int64_t size = argument(0, dimension), dealt = argument(1, dimension);
        const std::int64_t asked = argument(2, dimension), processes = argument(3, dimension);
        std::int64_t block = size, stride = size;  // MPI_DISTRIBUTE_NONE
        if (dealt == MPI_DISTRIBUTE_BLOCK)
            block = asked == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : asked;
        else if (dealt == MPI_DISTRIBUTE_CYCLIC)
            block = asked == MPI_DISTRIBUTE_DFLT_DARG ? 1 : asked;
        if (dealt != MPI_DISTRIBUTE_NONE) stride = block * processes;
        Collector all(most_);
        for (std::int64_t first = place[dimension] * block; first < size && !all.too_many(); first += stride)
            all.add(runs, extent, std::min(block, size - first), first * extent);
        auto collected = all.take();
        if (!collected) return std::nullopt;
        runs = std::move(*collected);
        extent *= size;
    }
    return runs;
}

/// For types that are made in a way that is not known here: the library packs from memory in which each byte states its own position, and
/// the result tells where each byte of the data lies. One byte holds 8 bits of a position, so the library is asked again for the next ones.
std::optional<Runs> Description::by_packing(MPI_Datatype type, const TypeFacts& facts) const {
    constexpr std::size_t most_extent = std::size_t{1} << 30, most_data = std::size_t{1} << 28;
    MPI_Aint lower = 0, extent = 0;
    if (real.Type_get_true_extent(type, &lower, &extent) != MPI_SUCCESS || extent <= 0) return std::nullopt;
    const auto room = static_cast<std::size_t>(extent);
    if (room > most_extent || facts.size > most_data) return std::nullopt;
    std::vector<std::uint8_t> memory(room), packed(facts.size);
    std::vector<std::uint32_t> places(facts.size);
    auto* at = reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::intptr_t>(memory.data()) - lower);
    for (unsigned bits = 0; bits == 0 || (room - 1) >> bits != 0; bits += 8) {
        for (std::size_t i = 0; i < room; ++i) memory[i] = static_cast<std::uint8_t>(i >> bits);
        if (pack(at, 1, type, facts, packed.data()) != MPI_SUCCESS) return std::nullopt;
        for (std::size_t i = 0; i < packed.size(); ++i)
            places[i] |= static_cast<std::uint32_t>(packed[i]) << bits;
    }
    if (facts.padded) {  // bytes that MPI_Pack leaves out: each lies behind the one before
        std::ranges::fill(memory, std::uint8_t{0xff});
        if (pack(at, 1, type, facts, packed.data()) != MPI_SUCCESS) return std::nullopt;
        for (std::size_t i = 1; i < packed.size(); ++i)
            if (packed[i] == 0) places[i] = places[i - 1] + 1;
    }
    const Runs byte{{0, 1}};
    Collector all(most_);
    for (std::uint32_t place : places) all.add(byte, 1, 1, lower + static_cast<std::int64_t>(place));
    return all.take();
}

std::optional<Runs> Description::of(MPI_Datatype type) const {
    TypeFacts facts;
    if (!type_facts(type, facts)) return std::nullopt;
    if (facts.size == 0) return Runs{};
    if (facts.contiguous) return Runs{{0, static_cast<std::int64_t>(facts.size)}};
    const TypeContents made(type);
    if (made.inner.empty()) return by_packing(type, facts);
    if (made.combiner == MPI_COMBINER_STRUCT) return of_struct(made);
    auto inner = of(made.inner[0]);
    if (!inner) return std::nullopt;
    const std::int64_t extent = extent_of(made.inner[0]);
    Collector all(most_);
    switch (made.combiner) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return inner;
        case MPI_COMBINER_CONTIGUOUS:
            all.add(*inner, extent, made.integer(0), 0);
            return all.take();
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
            return of_blocks(made, *inner, extent);
        case MPI_COMBINER_SUBARRAY:
            return of_subarray(made, std::move(*inner), extent);
        case MPI_COMBINER_DARRAY:
            return of_darray(made, std::move(*inner), extent);
        default:
            return by_packing(type, facts);
    }
}

}  // namespace

std::optional<std::vector<Run>> type_map(MPI_Datatype type, std::size_t most) {
    return Description(most).of(type);
}

}  // namespace mpisec::shim
