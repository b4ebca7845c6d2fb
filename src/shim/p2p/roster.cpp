#include "shim/p2p/roster.hpp"

#include <string_view>
#include <unordered_map>

#include "shim/p2p/realms.hpp"
#include "shim/process/process.hpp"

namespace mpisec::shim {

struct Rosters {
    std::mutex mutex;
    std::unordered_multimap<std::size_t, const Roster*> by_hash;
    const std::vector<std::int32_t> nobody{};
};

namespace {

std::size_t hash_of(const std::vector<std::int32_t>& numbers) {
    const auto* bytes = reinterpret_cast<const char*>(numbers.data());
    return std::hash<std::string_view>()({bytes, numbers.size() * sizeof numbers[0]});
}

/// Its last holder has let go of it.
void remove(const Roster* roster) {
    Rosters& rosters = *process.rosters;
    {
        const std::lock_guard lock(rosters.mutex);
        auto [entry, end] = rosters.by_hash.equal_range(hash_of(roster->numbers()));
        while (entry != end && entry->second != roster) ++entry;
        if (entry != end) rosters.by_hash.erase(entry);
    }
    delete roster;
}

}  // namespace

std::shared_ptr<const Roster> Roster::of(const std::vector<std::int32_t>& numbers) {
    Rosters& rosters = *process.rosters;
    const std::size_t hash = hash_of(numbers);
    const std::lock_guard lock(rosters.mutex);
    auto [entry, end] = rosters.by_hash.equal_range(hash);
    for (; entry != end; ++entry)
        if (entry->second->numbers() == numbers)
            if (auto held = entry->second->weak_from_this().lock())
                return held;  // else remove() waits for the lock
    std::shared_ptr<const Roster> made(new Roster(numbers), remove);
    rosters.by_hash.emplace(hash, made.get());
    return made;
}

const std::vector<std::int32_t>& Roster::nobody() {
    return process.rosters->nobody;
}

const fabric::Topology& Roster::topology() const {
    std::call_once(topology_made_, [this] {
        std::vector<int> node;
        for (std::int32_t number : numbers_) node.push_back(node_of(number));
        topology_.emplace(node);
    });
    return *topology_;
}

}  // namespace mpisec::shim
