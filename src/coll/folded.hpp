// Patterns that want a power of two, on any number of members: before they begin, the first members are
// folded in pairs, the lower one of a pair handing its operand to the higher one and resting. What is left
// are places, each standing for one member or for two neighbours, so operands stay in order.
#pragma once

#include "coll/among.hpp"

namespace mpisec::coll {

class Folded {
  public:
    explicit Folded(int members) {
        while (2 * places_ <= members) places_ *= 2;
        pairs_ = members - places_;
    }
    int places() const { return places_; }
    bool rests(int member) const { return member < 2 * pairs_ && member % 2 == 0; }
    bool stands_for_two(int member) const { return member < 2 * pairs_ && member % 2 == 1; }
    int place(int member) const { return member < 2 * pairs_ ? member / 2 : member - pairs_; }
    int member(int place) const { return place < pairs_ ? 2 * place + 1 : place + pairs_; }

  private:
    int places_ = 1, pairs_;
};

inline fabric::Task fold(Edges& edges, Among among, Folded folded, Partial& partial) {
    const std::size_t element = partial.reduction->element;
    if (folded.rests(among.me))
        co_await pass(edges, among.rank(among.me + 1), partial.value, 0, {}, element, {});
    if (folded.stands_for_two(among.me))
        co_await pass(edges, 0, {}, among.rank(among.me - 1), partial.spare, element,
                      [&](Range part) { partial.combine(part, true); });
}

}  // namespace mpisec::coll
