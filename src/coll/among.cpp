#include "coll/among.hpp"

#include <numeric>

namespace mpisec::coll {

using fabric::PlainRoom;
using fabric::Task;

Among everybody(const fabric::Fabric& fabric) {
    Among all{std::vector<int>(static_cast<std::size_t>(fabric.topology().ranks())), fabric.rank()};
    std::iota(all.ranks.begin(), all.ranks.end(), 0);
    return all;
}

Task reduce_to_first(Edges& edges, Among among, Partial& partial) {
    for (int distance = 1; distance < among.size(); distance *= 2) {
        if (among.me & distance) {
            co_await edges.send(among.rank(among.me - distance), partial.value);
            co_return;
        }
        if (among.me + distance >= among.size()) continue;
        co_await edges.finish(edges.receive(among.rank(among.me + distance), partial.spare));
        partial.take_higher();
    }
}

Task reduce_to_all(Edges& edges, Among among, Partial& partial) {
    int doubling = 1;  // as many members as recursive doubling can serve
    while (2 * doubling <= among.size()) doubling *= 2;
    const int folded = among.size() - doubling;
    const bool in_pair = among.me < 2 * folded, rests = in_pair && among.me % 2 == 0;
    if (rests) {
        co_await edges.send(among.rank(among.me + 1), partial.value);
        co_await edges.finish(edges.receive(among.rank(among.me + 1), partial.value));
        co_return;
    }
    if (in_pair) {
        co_await edges.finish(edges.receive(among.rank(among.me - 1), partial.spare));
        partial.take_lower();
    }
    const int place = in_pair ? among.me / 2 : among.me - folded;
    for (int distance = 1; distance < doubling; distance *= 2) {
        const int other = place ^ distance;
        const int peer = among.rank(other < folded ? 2 * other + 1 : other + folded);
        co_await edges.exchange(peer, partial.value, peer, partial.spare);
        partial.take(other < place);
    }
    if (in_pair) co_await edges.send(among.rank(among.me - 1), partial.value);
}

Task prefix(Edges& edges, Among among, Partial& partial) {
    for (int distance = 1; distance < among.size(); distance *= 2) {
        const bool sends = among.me + distance < among.size(), receives = among.me >= distance;
        if (sends && receives)
            co_await edges.exchange(among.rank(among.me + distance), partial.value,
                                    among.rank(among.me - distance), partial.spare);
        else if (sends)
            co_await edges.send(among.rank(among.me + distance), partial.value);
        else if (receives)
            co_await edges.finish(edges.receive(among.rank(among.me - distance), partial.spare));
        if (receives) partial.take_lower();
    }
}

Task prefix_before(Edges& edges, Among among, Partial& partial, PlainRoom before) {
    for (int distance = 1; distance < among.size(); distance *= 2) {
        const bool sends = among.me + distance < among.size(), receives = among.me >= distance;
        const PlainRoom room = distance == 1 ? before : partial.spare;
        if (sends && receives)
            co_await edges.exchange(among.rank(among.me + distance), partial.value,
                                    among.rank(among.me - distance), room);
        else if (sends)
            co_await edges.send(among.rank(among.me + distance), partial.value);
        else if (receives)
            co_await edges.finish(edges.receive(among.rank(among.me - distance), room));
        if (!receives) continue;
        if (distance > 1) partial.fabric.combine(partial.reduction, before, room);
        const bool sends_again = among.me + 2 * distance < among.size();
        if (sends_again) partial.fabric.combine(partial.reduction, partial.value, room);
    }
}

}  // namespace mpisec::coll
