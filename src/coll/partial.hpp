// What a rank has reduced so far, and room for what another rank has. Ranks that reduce the same pair get the
// same bits, and operations that do not commute their operands in order, because what comes from lower ranks
// is the left operand on both sides.
#pragma once

#include <utility>

#include "fabric/fabric.hpp"

namespace mpisec::coll {

/// `value` and `spare` are rooms of one size that change places when the result comes about in the other one:
/// combine() writes to its right operand, and copying would cost as much as combining.
struct Partial {
    fabric::Fabric& fabric;
    const fabric::Reduction& reduction;
    fabric::PlainRoom value, spare;

    /// After something came into `spare` from ranks that are all lower than those in `value`, or all higher.
    void take_lower() { fabric.combine(reduction, value, spare); }
    void take_higher() {
        fabric.combine(reduction, spare, value);
        std::swap(value, spare);
    }
    void take(bool from_lower) {
        if (from_lower)
            take_lower();
        else
            take_higher();
    }
    /// To where the value is wanted, unless it came about there.
    void settle(fabric::PlainRoom home) {
        if (value.data() != home.data()) fabric.copy(home, value);
        value = home;
    }
};

/// Of all of the rank's data.
inline Partial partial(fabric::Fabric& fabric, const fabric::Reduction& reduction, fabric::PlainRoom data) {
    return {fabric, reduction, data, fabric.plain(data.size())};
}

}  // namespace mpisec::coll
