// Who the ranks of a communicator are, by rank, and which of them share a node: kept once for all communicators that
// consist of the same processes in the same order, as duplicates do.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "fabric/topology.hpp"

namespace mpisec::shim {

class Roster : public std::enable_shared_from_this<Roster> {
  public:
    /// The one that there is, or a new one, which is gone with its last holder.
    static std::shared_ptr<const Roster> of(const std::vector<std::int32_t>& numbers);

    static const std::vector<std::int32_t>& nobody();

    const std::vector<std::int32_t>& numbers() const { return numbers_; }  ///< of the processes (realms.hpp)
    const fabric::Topology& topology() const;                              ///< made when first asked for

  private:
    explicit Roster(std::vector<std::int32_t> numbers) : numbers_(std::move(numbers)) {}

    const std::vector<std::int32_t> numbers_;
    mutable std::once_flag topology_made_;
    mutable std::optional<fabric::Topology> topology_;
};

/// A roster as the list of its numbers.
class SharedNumbers {
  public:
    SharedNumbers() = default;  // of nobody
    SharedNumbers(const std::vector<std::int32_t>& numbers) {
        if (!numbers.empty()) roster_ = Roster::of(numbers);
    }

    const Roster& roster() const { return *roster_; }  ///< unless it is of nobody
    const std::vector<std::int32_t>& list() const { return roster_ ? roster_->numbers() : Roster::nobody(); }
    operator const std::vector<std::int32_t>&() const { return list(); }
    auto begin() const { return list().begin(); }
    auto end() const { return list().end(); }
    std::size_t size() const { return list().size(); }
    bool empty() const { return list().empty(); }
    std::int32_t front() const { return list().front(); }
    std::int32_t operator[](std::size_t rank) const { return list()[rank]; }

  private:
    std::shared_ptr<const Roster> roster_;
};

}  // namespace mpisec::shim
