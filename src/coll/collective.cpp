#include "coll/collective.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "coll/entries.hpp"

namespace mpisec::coll {
namespace {

struct Known {
    std::string_view name;
    std::span<const Entry> (*algorithms)();
};
constexpr std::array<Known, collectives> known = {{
#define COLLECTIVE(name, NAME) {#name, name##_algorithms},
#include "base/collectives.def"
}};

}  // namespace

std::string_view name(Collective collective) {
    return known[static_cast<std::size_t>(collective)].name;
}

std::optional<Collective> collective_by_name(std::string_view name) {
    for (std::size_t i = 0; i < known.size(); ++i)
        if (known[i].name == name) return static_cast<Collective>(i);
    return {};
}

std::span<const Entry> algorithms(Collective collective) {
    return known[static_cast<std::size_t>(collective)].algorithms();
}

const Entry* find_algorithm(Collective collective, std::string_view name) {
    const std::span<const Entry> all = algorithms(collective);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& e) {
        return e.name == name || (!e.alias.empty() && e.alias == name);
    });
    return found == all.end() ? nullptr : &*found;
}

std::optional<std::size_t> agreed_bytes(Collective collective, const Call& call) {
    switch (collective) {
        case Collective::barrier:
            return 0;
        case Collective::bcast:
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan:
        case Collective::exscan:
            return call.data.size();
        case Collective::allgather:
        case Collective::reduce_scatter:  // the average: all ranks know all sizes
            if (call.equal_blocks && !call.from.size.empty()) return call.from.size.front();
            return std::accumulate(call.from.size.begin(), call.from.size.end(), std::size_t{0}) /
                   std::max<std::size_t>(call.from.size.size(), 1);
        case Collective::alltoall:
            if (!call.equal_blocks || call.to.size.empty()) return {};
            return call.to.size.front();
        case Collective::gather:
        case Collective::scatter: {
            if (!call.equal_blocks) return {};
            const Blocks& blocks = collective == Collective::gather ? call.from : call.to;
            return blocks.size.empty() ? call.data.size() : blocks.size.front();
        }
        case Collective::neighbor_allgather:
        case Collective::neighbor_alltoall:
            return {};  // a rank without neighbours knows no size
    }
    return {};
}

}  // namespace mpisec::coll
