#include "coll/patterns/numbers.hpp"

#include <algorithm>
#include <cstring>

namespace mpisec::coll {

namespace {

/// Follows the numbers once for each node peer, when that has given its own.
constexpr std::size_t given = 0x6E756D6265727321;

}  // namespace

fabric::Task share_numbers(fabric::Fabric& fabric, std::vector<std::size_t> mine, std::size_t at,
                           std::vector<std::size_t>& all, bool* complete) {
    constexpr std::size_t each = sizeof(std::size_t);
    const std::size_t numbers = all.size(), node_peers = fabric.node_peers().size();
    const fabric::PlaintextBuffer room = fabric.shared_numbers((numbers + node_peers) * each);
    auto put = [&](std::size_t place, const std::size_t* from, std::size_t n) {
        if (n > 0) std::memcpy(room.data() + place * each, from, n * each);
    };
    put(at, mine.data(), mine.size());
    put(numbers + static_cast<std::size_t>(fabric.local()), &given, 1);
    co_await fabric.node_barrier();

    std::vector<std::size_t> seen(numbers + node_peers);
    std::memcpy(seen.data(), room.data(), room.size());
    const auto end = seen.begin() + static_cast<std::ptrdiff_t>(numbers);
    const bool is_complete = std::all_of(end, seen.end(), [](std::size_t mark) { return mark == given; });
    if (complete) *complete = is_complete;
    if (is_complete) {
        all.assign(seen.begin(), end);
    } else {  // the room is not shared with the node peers
        fabric.fail();
        std::fill(all.begin(), all.end(), 0);
        std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

}  // namespace mpisec::coll
