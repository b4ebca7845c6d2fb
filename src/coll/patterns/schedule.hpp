// Reductions among a few ranks that know each other, as lists of steps, of which the collectives that reduce are
// built. Operands are combined in the order of the members. For vectors without elements nothing is sent.
#pragma once

#include <bit>
#include <optional>
#include <vector>

#include "coll/patterns/members.hpp"
#include "coll/patterns/partial.hpp"
#include "coll/patterns/segments.hpp"

namespace mpisec::coll {

/// One member's part in one round: it sends a range of its value, and receives one.
struct Step {
    enum class What {
        lower,   ///< reduced by members that are all lower than those that the value comes from
        higher,  ///< reduced by members that are all higher
        result,  ///< takes the place of the value
    };
    int to = 0;
    Range out = {};  ///< empty: nothing is sent
    int from = 0;
    Range in = {};  ///< empty: nothing is received
    What what = What::result;

    static Step send(int to, Range out) { return {to, out}; }
    static Step receive(int from, Range in, What what) { return {0, {}, from, in, what}; }
};
using Schedule = std::vector<Step>;

/// Binomial tree: in the end the first member has the result, the others have anything. ceil(lg size) rounds.
Schedule tree(const Members& members, std::size_t bytes);

/// Recursive doubling: in the end all have the result, with the same bits. lg size rounds, two more when size is not a
/// power of two.
Schedule recursive_doubling(const Members& members, std::size_t bytes);

/// Each member's inclusive prefix: round by round it hands all that it has to the member at twice the distance.
/// ceil(lg size) rounds.
Schedule prefixes(const Members& members, std::size_t bytes);

/// No members are folded: the first round is the first one for all.
inline bool begins_alike(const Members& members) {
    return std::has_single_bit(static_cast<unsigned>(members.size()));
}

/// Runs a schedule on one rank's value.
class Reducing {
  public:
    Reducing(Edges& edges, Partial& partial, Schedule schedule)
        : edges_(edges), partial_(partial), schedule_(std::move(schedule)) {}

    /// Starts the first round, which goes on while the rank does something else. Two ranks that send each other
    /// several messages must still do so in one order: when anything follows the schedule, this may be called only if all
    /// members begin alike.
    void begin();
    /// Runs the schedule to its end, from wherever it is.
    fabric::Task finish();

  private:
    Passing start(const Step& step, std::size_t ahead);

    Edges& edges_;
    Partial& partial_;
    const Schedule schedule_;
    std::optional<Passing> first_;
};

}  // namespace mpisec::coll
