// Which algorithm serves a call: the first rule of a table that fits the collective, where its ranks are and
// how many bytes it moves (docs/collectives.md). All ranks must choose alike, so a call is judged only by
// what all of them know.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "coll/collective.hpp"
#include "coll/selection/interval.hpp"
#include "coll/selection/message_rules.hpp"

namespace mpisec::coll {

/// block: every node's ranks are consecutive; cyclic: ranks were dealt to the nodes in turn, leaving out nodes that were
/// full. With one rank per node a placement is both, and is called block.
enum class Placement : std::uint8_t { block, cyclic, other };
Placement placement(const fabric::Topology& topology);

struct Rule {
    Collective collective;
    const Entry* algorithm;  ///< of the registry; skipped where it does not suit
    Interval nodes;
    Interval ranks_per_node;        ///< of the largest node
    std::optional<Interval> bytes;  ///< of agreed_bytes(); never fits a call for which these are unknown
    std::optional<Placement> placement;

    bool operator==(const Rule&) const = default;
};

class Selection {
  public:
    explicit Selection(const std::vector<Rule>& rules = {}, MessageRules messages = {});
    /// `path` is for error messages.
    static Result<Selection> parse(std::string_view toml, const std::string& path);

    /// Adds the other's rules for collectives behind these, for calls that none of these fits.
    void complete_with(const Selection& other);

    /// Chooses this algorithm, whatever the rules say; where it does not suit, the first of the collective.
    void force(Collective collective, const Entry* algorithm);

    /// The rules of one collective on one communicator: to be kept with it.
    class For {
      public:
        /// `topology`: the one given to for_topology().
        const Entry& choose(const fabric::Topology& topology, const Call& call) const;

      private:
        friend class Selection;
        struct Choice {
            const Entry* algorithm;
            std::optional<Interval> bytes;
        };
        Collective collective_{};
        bool by_bytes_ = false;
        std::vector<Choice> choices_;
    };
    For for_topology(Collective collective, const fabric::Topology& topology) const;

    /// For a single call.
    const Entry& choose(Collective collective, const fabric::Topology& topology, const Call& call) const {
        return for_topology(collective, topology).choose(topology, call);
    }

    const std::vector<Rule>& rules(Collective collective) const {
        return rules_[static_cast<std::size_t>(collective)];
    }
    std::size_t size() const;
    const MessageRules& messages() const { return messages_; }
    /// The rules as TOML that parse() reads back, in one form: equal texts choose alike. Comments, spaces and
    /// the order of keys and of collectives do not show in it.
    std::string text() const;

  private:
    std::array<std::vector<Rule>, collectives> rules_;
    MessageRules messages_;
};

}  // namespace mpisec::coll
