// What a rank has reduced so far, and room for what another rank has. Ranks that reduce the same pair get the
// same bits, and operations that do not commute get their operands in order, because on both sides what comes from lower
// ranks is the left operand.
#pragma once

#include <utility>
#include <vector>

#include "coll/patterns/range.hpp"

namespace mpisec::coll {

/// `value` and `spare` are rooms of one size that change places when the result is in the other one:
/// combine() writes to its right operand, and copying would cost as much as combining.
struct Partial {
    fabric::Fabric* fabric;
    const fabric::Reduction* reduction;
    fabric::PlaintextBuffer value, spare;

    /// Combines this part of `spare`, which was received from ranks that are all lower than those in `value`, or
    /// all higher. When all parts are done: turn().
    void combine(Range part, bool from_lower) {
        if (from_lower)
            fabric->combine(*reduction, part.of(value), part.of(spare));
        else
            fabric->combine(*reduction, part.of(spare), part.of(value));
    }
    void turn(bool from_lower) {
        if (!from_lower) std::swap(value, spare);
    }
    /// Copies the value to where it is wanted, unless it is there already.
    void settle(fabric::PlaintextBuffer home) {
        if (value.data() != home.data() && !home.empty()) fabric->copy(home, value);
        value = home;
    }
    Range whole() const { return {0, value.size()}; }
};

/// A Partial of all of the rank's data.
inline Partial partial(fabric::Fabric& fabric, const fabric::Reduction& reduction,
                       fabric::PlaintextBuffer data) {
    return {&fabric, &reduction, data, fabric.plaintext(data.size())};
}

/// The order in which to take n operands that are all available, of which one is the rank's own. The others are combined
/// into the first, one after the other, each as the left operand.
inline std::vector<int> order_of_operands(bool commutes, int n, int own) {
    std::vector<int> order;
    const int first = commutes ? own : n - 1;  // the rank's own saves a copy when any will do
    for (int k = 0; k < n; ++k) order.push_back((first - k + n) % n);
    return order;
}

}  // namespace mpisec::coll
