// Which processes the ranks of a communicator are, and which of them share a node: kept once for all communicators that consist of the same
// processes in the same order, as duplicates do.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ranks.hpp"
#include "fabric/topology.hpp"

namespace mpisec::shim {

class Roster : public std::enable_shared_from_this<Roster> {
  public:
    /// The existing roster of these numbers, or a new one, which is deleted with its last holder.
    static std::shared_ptr<const Roster> of(Ranks numbers);

    Ranks numbers() const { return numbers_; }  ///< of the processes (realms.hpp)
    const fabric::Topology& topology() const;   ///< made when first asked for

  private:
    explicit Roster(Ranks numbers);

    std::vector<std::int32_t> list_;  ///< empty where the numbers are equally far apart
    Ranks numbers_;
    mutable std::once_flag topology_made_;
    mutable std::optional<fabric::Topology> topology_;
};

/// A roster, used as the list of its numbers.
class SharedNumbers {
  public:
    SharedNumbers() = default;  // of nobody
    SharedNumbers(Ranks numbers) {
        if (!numbers.empty()) roster_ = Roster::of(numbers);
    }
    SharedNumbers(const std::vector<std::int32_t>& numbers) : SharedNumbers(Ranks(numbers)) {}

    const Roster& roster() const { return *roster_; }  ///< only if there are any numbers
    /// Valid while this object lives.
    operator Ranks() const { return roster_ ? roster_->numbers() : Ranks(); }
    std::vector<std::int32_t> list() const { return Ranks(*this).list(); }
    auto begin() const { return Ranks(*this).begin(); }
    auto end() const { return Ranks(*this).end(); }
    std::size_t size() const { return Ranks(*this).size(); }
    bool empty() const { return !roster_; }
    std::int32_t front() const { return Ranks(*this).front(); }
    std::int32_t operator[](std::size_t rank) const { return Ranks(*this)[rank]; }

  private:
    std::shared_ptr<const Roster> roster_;
};

/// Where each of `part` is in `whole`: in time proportional to their lengths. whole.size() for a number that is not in it.
std::vector<int> places_in(Ranks part, Ranks whole);

}  // namespace mpisec::shim
