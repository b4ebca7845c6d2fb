#include "shim/rma/memory.hpp"

#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "shim/collective/local_reduction.hpp"
#include "shim/collective/reduction.hpp"
#include "shim/p2p/datatype.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/device.hpp"

namespace mpisec::shim::rma {
namespace {

constexpr std::uintptr_t widest_alignment = 16;

/// `inout` becomes, element by element, `in` op `inout`. Neither has gaps.
int combine(const Arithmetic& by, std::uint8_t* inout, const std::uint8_t* in, std::size_t bytes) {
    const std::size_t count = bytes / by.facts.size;
    if (by.facts.contiguous && count <= std::numeric_limits<int>::max())
        return reduce_locally(in, inout, static_cast<int>(count), by.element, by.op);
    const auto reduction = make_reduction(by.element, by.facts, by.op);
    return reduction && reduction->combine({inout, bytes}, {in, bytes}) ? MPI_SUCCESS : MPI_ERR_OP;
}

/// For a GPU's memory. Copies run by run, because what lies between the runs may be changing. Returns MPI_ERR_OTHER, after a message,
/// when the driver fails.
[[gnu::cold, gnu::noinline]] int gather_from_device(const Layout& layout, const std::uint8_t* at,
                                                    std::uint8_t* to) {
    bool good = true;
    layout.for_each_run([&](std::int64_t offset, std::size_t bytes) {
        good = good && copy_from_device(to, at + offset, bytes);
        to += bytes;
    });
    return good ? MPI_SUCCESS : MPI_ERR_OTHER;
}
[[gnu::cold, gnu::noinline]] int scatter_to_device(const Layout& layout, const std::uint8_t* from,
                                                   std::uint8_t* at) {
    bool good = true;
    layout.for_each_run([&](std::int64_t offset, std::size_t bytes) {
        good = good && copy_to_device(at + offset, from, bytes);
        from += bytes;
    });
    return good ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/// The memory on which a request is carried out. All of it is in a GPU's memory, or all in the host's, as its first byte is.
struct Spot {
    Spot(const Layout& of, std::uint8_t* place)
        : layout(of), at(place), device(!of.runs.empty() && on_device(place + of.runs[0].offset)) {}

    int gather(std::uint8_t* to) const {
        if (device) [[unlikely]]
            return gather_from_device(layout, at, to);
        layout.gather(at, to);
        return MPI_SUCCESS;
    }
    int scatter(const std::uint8_t* from) const {
        if (device) [[unlikely]]
            return scatter_to_device(layout, from, at);
        layout.scatter(from, at);
        return MPI_SUCCESS;
    }

    const Layout& layout;
    std::uint8_t* const at;
    const bool device;
};

int accumulate(const Arithmetic& by, const Spot& spot, std::size_t bytes, const std::uint8_t* data) {
    const Layout& layout = spot.layout;
    if (by.error != MPI_SUCCESS || by.op == constants.no_op) return by.error;
    if (by.op == constants.replace) return spot.scatter(data);
    if (layout.one_run() && by.facts.contiguous && !spot.device) {
        std::uint8_t* first = spot.at + layout.runs[0].offset;
        const auto address = reinterpret_cast<std::uintptr_t>(first);
        if (address % widest_alignment == 0 || address % by.facts.size == 0)
            return combine(by, first, data, bytes);
    }
    std::vector<std::uint8_t> present(bytes);
    int code = spot.gather(present.data());
    if (code == MPI_SUCCESS) code = combine(by, present.data(), data, bytes);
    return code == MPI_SUCCESS ? spot.scatter(present.data()) : code;
}

}  // namespace

Arithmetic arithmetic_of(const Header& header) {
    Arithmetic it;
    if (header.kind != Kind::accumulate && header.kind != Kind::get_accumulate) return it;
    it.op = op_of_handle(header.op);
    it.element = type_of_handle(header.element);
    const bool moves = it.op == constants.no_op || it.op == constants.replace;
    if (it.op == constants.op_null)
        it.error = MPI_ERR_OP;
    else if (it.element == constants.datatype_null || !type_facts(it.element, it.facts) ||
             it.facts.size == 0 || header.bytes % it.facts.size != 0)
        it.error = MPI_ERR_TYPE;
    else if (!moves && check_operation(it.element, it.op, true) != MPI_SUCCESS)
        it.error = MPI_ERR_OP;
    return it;
}

bool WindowMemory::attach(void* base, MPI_Aint size) {
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    std::uintptr_t end = 0;
    if (size < 0 || __builtin_add_overflow(first, static_cast<std::uintptr_t>(size), &end)) return false;
    if (size == 0) {
        empty_regions_.insert(first);
        return true;
    }
    auto next = regions_.lower_bound(first);
    if (next != regions_.end() && next->first < end) return false;
    if (next != regions_.begin() && std::prev(next)->second > first) return false;
    regions_[first] = end;
    return true;
}

bool WindowMemory::detach(const void* base) {
    const auto first = reinterpret_cast<std::uintptr_t>(base);
    // The empty one first, because memory that is still attached must stay within reach.
    if (const auto empty = empty_regions_.find(first); empty != empty_regions_.end()) {
        empty_regions_.erase(empty);
        return true;
    }
    return regions_.erase(first) != 0;
}

bool WindowMemory::attached(Wide first, Wide end) const {
    if (first < 0 || end > static_cast<Wide>(UINTPTR_MAX)) return false;
    // Regions that touch each other are one piece of memory.
    auto region = regions_.upper_bound(static_cast<std::uintptr_t>(first));
    if (region == regions_.begin()) return false;
    --region;
    std::uintptr_t covered = region->second;
    while (covered < static_cast<std::uintptr_t>(end)) {
        if (++region == regions_.end() || region->first != covered) return false;
        covered = region->second;
    }
    return covered > static_cast<std::uintptr_t>(first);
}

bool fits(std::int64_t displacement, MPI_Aint unit, MPI_Aint size, const Layout& layout) {
    const Wide at = static_cast<Wide>(displacement) * unit;
    return at + layout.first() >= 0 && at + layout.end() <= size;
}

WindowMemory::Place WindowMemory::locate(std::int64_t displacement, const Layout& layout) const {
    if (!dynamic_) {
        if (!fits(displacement, unit_, size_, layout)) return {};
        return {base_ + static_cast<std::int64_t>(displacement) * unit_, true};
    }
    const Wide at = static_cast<std::uintptr_t>(displacement);
    if (!attached(at + layout.first(), at + layout.end())) {
        bool inside = true;
        layout.for_each_run([&](std::int64_t offset, std::size_t bytes) {
            inside = inside && attached(at + offset, at + offset + static_cast<Wide>(bytes));
        });
        if (!inside) return {};
    }
    return {reinterpret_cast<std::uint8_t*>(displacement), true};
}

int WindowMemory::perform(const Header& header, const Layout& layout, const Arithmetic& arithmetic,
                          const std::uint8_t* data, std::uint8_t* fetched) const {
    const auto [at, inside] = locate(header.displacement, layout);
    if (!inside) return MPI_ERR_RMA_RANGE;
    std::unique_lock<NodeLock> alone;
    if (lock_ && is_atomic(header.kind)) alone = std::unique_lock(*lock_);
    const Spot spot(layout, at);
    if (fetched)
        if (const int code = spot.gather(fetched); code != MPI_SUCCESS) return code;
    switch (header.kind) {
        case Kind::put:
            return spot.scatter(data);
        case Kind::accumulate:
        case Kind::get_accumulate:
            return accumulate(arithmetic, spot, header.bytes, data);
        case Kind::compare_and_swap:
            if (fetched && header.bytes > 0 && std::memcmp(fetched, data, header.bytes) == 0)
                return spot.scatter(data + header.bytes);
            return MPI_SUCCESS;
        default:
            return MPI_SUCCESS;
    }
}

std::uint64_t payload_of(const Header& header) {
    switch (header.kind) {
        case Kind::put:
        case Kind::accumulate:
            return header.bytes;
        case Kind::get_accumulate:
            return header.op == shared_handle_of_op(constants.no_op) ? 0 : header.bytes;
        case Kind::compare_and_swap:
            return 2 * header.bytes;
        default:
            return 0;
    }
}

std::uint64_t answer_of(const Header& header) {
    const bool fetches = header.kind == Kind::get || header.kind == Kind::get_accumulate ||
                         header.kind == Kind::compare_and_swap;
    return fetches ? header.bytes : 0;
}

}  // namespace mpisec::shim::rma
