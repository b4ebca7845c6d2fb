#include "shim/p2p/roster.hpp"

#include <unordered_map>

#include "shim/p2p/realms.hpp"
#include "shim/process/process.hpp"

namespace mpisec::shim {

struct Rosters {
    std::mutex mutex;
    std::unordered_multimap<std::size_t, const Roster*> by_hash;
};

namespace {

std::size_t hash_of(Ranks numbers) {  // FNV-1a (Fowler, Noll, Vo), by number
    std::uint64_t hash = 0xCBF29CE484222325;
    for (int number : numbers) hash = (hash ^ static_cast<std::uint32_t>(number)) * 0x100000001B3;
    return hash;
}

bool equally_far_apart(Ranks numbers) {
    for (std::size_t rank = 2; rank < numbers.size(); ++rank)
        if (numbers[rank] - numbers[rank - 1] != numbers[1] - numbers[0]) return false;
    return true;
}

/// The last holder has let go of the roster.
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

std::shared_ptr<const Roster> Roster::of(Ranks numbers) {
    Rosters& rosters = *process.rosters;
    const std::size_t hash = hash_of(numbers);
    const std::lock_guard lock(rosters.mutex);
    auto [entry, end] = rosters.by_hash.equal_range(hash);
    for (; entry != end; ++entry)
        if (entry->second->numbers() == numbers)
            if (auto held = entry->second->weak_from_this().lock())
                return held;  // else its last holder is gone, and remove() waits for the lock
    std::shared_ptr<const Roster> made(new Roster(numbers), remove);
    rosters.by_hash.emplace(hash, made.get());
    return made;
}

Roster::Roster(Ranks numbers) {
    if (equally_far_apart(numbers)) {
        const int step = numbers.size() > 1 ? numbers[1] - numbers[0] : 0;
        numbers_ = Ranks::every(step, numbers.front(), static_cast<int>(numbers.size()));
    } else {
        list_ = numbers.list();
        numbers_ = list_;
    }
}

const fabric::Topology& Roster::topology() const {
    std::call_once(topology_made_, [this] {
        std::vector<int> node;
        for (std::int32_t number : numbers_) node.push_back(node_of(number));
        topology_.emplace(node);
    });
    return *topology_;
}

std::vector<int> places_in(Ranks part, Ranks whole) {
    std::unordered_map<std::int32_t, int> place_of;
    for (std::size_t place = 0; place < whole.size(); ++place)
        place_of.emplace(whole[place], static_cast<int>(place));
    std::vector<int> found;
    for (std::int32_t number : part) {
        const auto place = place_of.find(number);
        found.push_back(place == place_of.end() ? static_cast<int>(whole.size()) : place->second);
    }
    return found;
}

}  // namespace mpisec::shim
