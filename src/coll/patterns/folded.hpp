// Patterns that need a power of two, on any number of members: before they begin, the first members are
// folded in pairs. The lower member of a pair hands its operand to the higher one and rests. This leaves
// places, each of which stands for one member or for two neighbours, so operands stay in order.
#pragma once

#include "coll/patterns/schedule.hpp"

namespace mpisec::coll {

class Folded {
  public:
    Folded(const Members& members, std::size_t bytes) : members_(members), bytes_(bytes) {
        while (2 * places_ <= members.size()) places_ *= 2;
        pairs_ = members.size() - places_;
    }
    int places() const { return places_; }
    int member_at(int place) const { return place < pairs_ ? 2 * place + 1 : place + pairs_; }
    int rank_at(int place) const { return members_.rank(member_at(place)); }

    // Of this member.
    bool rests() const { return in_pair() && members_.me() % 2 == 0; }
    bool stands_for_two() const { return in_pair() && members_.me() % 2 == 1; }
    int place() const { return in_pair() ? members_.me() / 2 : members_.me() - pairs_; }
    Schedule fold() const {
        const Range all{0, bytes_};
        if (rests()) return {Step::send(members_.rank(members_.me() + 1), all)};
        if (stands_for_two())
            return {Step::receive(members_.rank(members_.me() - 1), all, Step::What::lower)};
        return {};
    }

  private:
    bool in_pair() const { return members_.me() < 2 * pairs_; }

    const Members& members_;
    std::size_t bytes_;
    int places_ = 1, pairs_;
};

}  // namespace mpisec::coll
