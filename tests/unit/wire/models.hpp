// What the replay set and the order tracker promise, written in the plainest way: the unit tests and the
// fuzzers compare with these.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace mpisec::wire {

/// Every counter ever accepted.
struct ReplayModel {
    std::set<std::uint64_t> accepted;

    bool insert(std::uint64_t counter) { return accepted.insert(counter).second; }
    std::uint64_t base() const {
        std::uint64_t expected = 0;
        for (std::uint64_t counter : accepted) {
            if (counter != expected) break;
            ++expected;
        }
        return expected;
    }
    std::size_t runs() const {
        std::size_t runs = 0;
        for (std::uint64_t counter : accepted)
            if (counter > base() && !accepted.contains(counter - 1)) ++runs;
        return runs;
    }
};

/// Every record ever made, compared with each new one.
struct OrderModel {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> records;

    bool record(std::uint64_t position, std::uint64_t counter) {
        for (auto [p, c] : records)
            if (p == position || (p < position) != (c < counter)) return false;
        records.emplace_back(position, counter);
        return true;
    }
};

}  // namespace mpisec::wire
