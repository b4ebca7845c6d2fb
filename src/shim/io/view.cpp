#include "shim/io/view.hpp"

#include <optional>

#include "shim/p2p/datatype.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim::io {
namespace {

using Runs = std::vector<Run>;
constexpr std::size_t most_runs = std::size_t{1} << 22;
/// Of types that are described by what the library packs from them, which takes as much memory.
constexpr MPI_Aint most_packed_extent = MPI_Aint{1} << 26;

MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint lower = 0, extent = 0;
    real.Type_get_extent(type, &lower, &extent);
    return extent;
}

/// How a type was made.
class Contents {
  public:
    explicit Contents(MPI_Datatype type) {
        int numbers = 0, places = 0, types = 0;
        if (real.Type_get_envelope(type, &numbers, &places, &types, &combiner) != MPI_SUCCESS ||
            combiner == MPI_COMBINER_NAMED || types == 0) {
            combiner = MPI_COMBINER_NAMED;
            return;
        }
        integers.resize(static_cast<std::size_t>(numbers) + 1);
        addresses.resize(static_cast<std::size_t>(places) + 1);
        inner.resize(static_cast<std::size_t>(types));
        if (real.Type_get_contents(type, numbers, places, types, integers.data(), addresses.data(),
                                   inner.data()) != MPI_SUCCESS) {
            inner.clear();
            combiner = MPI_UNDEFINED;
        }
    }
    ~Contents() {
        for (MPI_Datatype& type : inner) {
            int numbers = 0, places = 0, types = 0, how = 0;
            real.Type_get_envelope(type, &numbers, &places, &types, &how);
            if (how != MPI_COMBINER_NAMED) Type_free(&type);  // a reference that MPI_Type_get_contents gave
        }
    }
    Contents(const Contents&) = delete;
    Contents& operator=(const Contents&) = delete;

    std::int64_t integer(std::size_t i) const { return integers[i]; }
    std::int64_t address(std::size_t i) const { return addresses[i]; }

    int combiner = MPI_UNDEFINED;
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> inner;
};

/// Collects runs in the order of a type map.
class Collector {
  public:
    /// `count` times what `inner` says, each `extent` after the one before, the first at `at`.
    void add(const Runs& inner, std::int64_t extent, std::int64_t count, std::int64_t at) {
        if (inner.size() == 1 && inner[0].bytes == extent && count > 0)
            return add({at + inner[0].offset, count * extent});
        for (std::int64_t i = 0; i < count && !too_many(); ++i)
            for (const Run& run : inner) add({at + i * extent + run.offset, run.bytes});
    }
    bool too_many() const { return runs_.size() > most_runs; }
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
    Runs runs_;
};

std::optional<Runs> describe(MPI_Datatype type);

/// Blocks of one inner type.
std::optional<Runs> describe_blocks(const Contents& made, const Runs& inner, std::int64_t extent) {
    Collector all;
    const std::int64_t count = made.integer(0);
    for (std::int64_t i = 0; i < count; ++i) {
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
        if (all.too_many()) break;
    }
    return all.take();
}

std::optional<Runs> describe_struct(const Contents& made) {
    Collector all;
    for (std::size_t i = 0; i < made.inner.size(); ++i) {
        const auto inner = describe(made.inner[i]);
        if (!inner) return std::nullopt;
        all.add(*inner, extent_of(made.inner[i]), made.integer(1 + i), made.address(i));
    }
    return all.take();
}

/// From the dimension whose elements lie side by side to the one whose elements are farthest apart.
std::optional<Runs> describe_subarray(const Contents& made, Runs runs, std::int64_t extent) {
    const auto dimensions = static_cast<std::size_t>(made.integer(0));
    const bool fortran = made.integer(1 + 3 * dimensions) == MPI_ORDER_FORTRAN;
    for (std::size_t i = 0; i < dimensions; ++i) {
        const std::size_t dimension = fortran ? i : dimensions - 1 - i;
        const std::int64_t size = made.integer(1 + dimension);
        const std::int64_t part = made.integer(1 + dimensions + dimension);
        const std::int64_t first = made.integer(1 + 2 * dimensions + dimension);
        Collector all;
        all.add(runs, extent, part, first * extent);
        auto collected = all.take();
        if (!collected) return std::nullopt;
        runs = std::move(*collected);
        extent *= size;
    }
    return runs;
}

/// What the library packs tells it: for types that are made in a way that is not known here.
std::optional<Runs> describe_by_packing(MPI_Datatype type) {
    MPI_Aint lower = 0, extent = 0;
    if (real.Type_get_true_extent(type, &lower, &extent) != MPI_SUCCESS || extent > most_packed_extent)
        return std::nullopt;
    Guard guard;
    const auto layout = rma::layout_of(type);
    if (!layout) return std::nullopt;
    return layout->runs;
}

/// Of one element, in the order of its type map.
std::optional<Runs> describe(MPI_Datatype type) {
    TypeFacts facts;
    if (!type_facts(type, facts)) return std::nullopt;
    if (facts.size == 0) return Runs{};
    if (facts.contiguous) return Runs{{0, static_cast<std::int64_t>(facts.size)}};
    const Contents made(type);
    if (made.inner.empty()) return describe_by_packing(type);
    if (made.combiner == MPI_COMBINER_STRUCT) return describe_struct(made);
    auto inner = describe(made.inner[0]);
    if (!inner) return std::nullopt;
    const std::int64_t extent = extent_of(made.inner[0]);
    Collector all;
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
            return describe_blocks(made, *inner, extent);
        case MPI_COMBINER_SUBARRAY:
            return describe_subarray(made, std::move(*inner), extent);
        default:
            return describe_by_packing(type);
    }
}

}  // namespace

std::shared_ptr<const View> View::of(MPI_Offset disp, MPI_Datatype filetype) {
    const auto runs = describe(filetype);
    if (!runs || runs->empty()) return nullptr;
    auto view = std::make_shared<View>();
    view->disp_ = disp;
    view->extent_ = extent_of(filetype);
    view->size_ = 0;
    view->pieces_.clear();
    std::int64_t end = 0;
    for (const Run& run : *runs) {
        if (run.offset < end) return nullptr;
        view->pieces_.push_back({run.offset, run.bytes, view->size_});
        view->size_ += run.bytes;
        end = run.offset + run.bytes;
    }
    // The next element's data lies behind this one's.
    return view->extent_ + view->pieces_[0].offset >= end ? view : nullptr;
}

}  // namespace mpisec::shim::io
