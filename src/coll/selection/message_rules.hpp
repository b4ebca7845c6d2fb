// How messages between two ranks are cut where MPISEC_TUNING's table says so (docs/collectives.md, "Messages between two ranks").
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "coll/selection/interval.hpp"

namespace mpisec::coll {

struct MessageRule {
    /// The segment of a rule under which all data that does not travel with the header is one segment.
    static constexpr std::uint64_t whole = std::numeric_limits<std::uint64_t>::max();

    Interval bytes;         ///< of the message
    std::uint64_t segment;  ///< plaintext bytes

    bool operator==(const MessageRule&) const = default;
};

struct MessageRules {
    std::uint64_t threshold = 0;  ///< longer messages travel in segments; bytes; 0: as without a table
    std::vector<MessageRule> rules;

    /// By the first rule that fits; 0 when none does.
    std::uint64_t segment_of(std::uint64_t bytes) const {
        for (const MessageRule& rule : rules)
            if (rule.bytes.has(bytes)) return rule.segment;
        return 0;
    }
    bool operator==(const MessageRules&) const = default;
};

}  // namespace mpisec::coll
