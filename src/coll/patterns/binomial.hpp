// The binomial tree of places 0 ... n - 1, seen from one of them. The places below a place are the run of places that
// follows it, so the data of a subtree can lie in one piece.
#pragma once

#include <algorithm>
#include <vector>

namespace mpisec::coll {

class Binomial {
  public:
    Binomial(int places, int place) : places_(places), place_(place) {
        while (reach_ < places && !(place & reach_)) reach_ *= 2;
    }
    /// Not for the root, 0.
    int parent() const { return place_ - reach_; }
    /// The widest subtree first: it has the longest way to go.
    std::vector<int> children() const {
        std::vector<int> all;
        for (int step = reach_ / 2; step > 0; step /= 2)
            if (place_ + step < places_) all.push_back(place_ + step);
        return all;
    }
    /// Places in the subtree, including this one.
    int width() const { return std::min(reach_, places_ - place_); }

  private:
    int places_, place_;
    int reach_ = 1;  ///< places that the subtree would have in an unlimited tree
};

}  // namespace mpisec::coll
