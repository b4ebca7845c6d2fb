#include "coll/shares.hpp"

#include "coll/folded.hpp"
#include "coll/spread.hpp"

namespace mpisec::coll {
namespace {

using fabric::PlainRoom;
using fabric::Task;

/// The slices of the vector that a place keeps in recursive halving, round by round.
struct Kept {
    int first, count;

    Kept half(bool upper) const { return {upper ? first + count / 2 : first, count / 2}; }
    Range bytes(std::size_t all, std::size_t element, int slices) const {
        const Range begin = slice(all, element, slices, first),
                    last = slice(all, element, slices, first + count - 1);
        return {begin.offset, last.end() - begin.offset};
    }
};

Range of_member(const Shares& shares, int member) {
    return shares[static_cast<std::size_t>(member)];
}

}  // namespace

Shares shares_of_halving(int members, std::size_t bytes, std::size_t element) {
    const Folded folded(members);
    Shares shares(static_cast<std::size_t>(members));
    for (int place = 0; place < folded.places(); ++place) {
        Kept kept{0, folded.places()};
        for (int distance = 1; distance < folded.places(); distance *= 2) kept = kept.half(place & distance);
        shares[static_cast<std::size_t>(folded.member(place))] = kept.bytes(bytes, element, folded.places());
    }
    return shares;
}

Task reduce_by_halving(Edges& edges, Among among, Partial& partial) {
    const std::size_t bytes = partial.value.size(), element = partial.reduction->element;
    const Folded folded(among.size());
    co_await fold(edges, among, folded, partial);
    if (folded.rests(among.me)) co_return;
    const int place = folded.place(among.me);
    Kept kept{0, folded.places()};
    for (int distance = 1; distance < folded.places(); distance *= 2) {
        const int peer = among.rank(folded.member(place ^ distance));
        const bool lower = place & distance;
        const Range given = kept.half(!lower).bytes(bytes, element, folded.places());
        kept = kept.half(lower);
        const Range mine = kept.bytes(bytes, element, folded.places());
        co_await pass(edges, peer, given.of(partial.value), peer, mine.of(partial.spare), element,
                      [&](Range part) {
                          partial.combine({mine.offset + part.offset, part.size}, lower);
                      });
        partial.turn(lower);
    }
}

Shares shares_of_ring(int members, std::size_t bytes, std::size_t element) {
    Shares shares;
    for (int member = 0; member < members; ++member) shares.push_back(slice(bytes, element, members, member));
    return shares;
}

Task reduce_by_ring(Edges& edges, Among among, Partial& partial) {
    const int n = among.size();
    const Shares shares = shares_of_ring(n, partial.value.size(), partial.reduction->element);
    for (int step = 1; step < n; ++step) {
        const Range out = of_member(shares, (among.me - step + n) % n),
                    in = of_member(shares, (among.me - step - 1 + n) % n);
        co_await pass(edges, among.rank((among.me + 1) % n), out.of(partial.value),
                      among.rank((among.me - 1 + n) % n), in.of(partial.spare), partial.reduction->element,
                      [&](Range part) {
                          partial.combine({in.offset + part.offset, part.size}, true);
                      });
    }
}

Task spread_shares(fabric::Fabric& fabric, Among among, Partial& partial, Shares shares, Spread by,
                   std::uint32_t turn) {
    Group group{among.ranks, {}, among.me};
    for (const Range& share : shares)
        group.bytes.push_back(share.size == 0 ? 0 : fabric::sealed_bytes(share.size));
    auto box = [&](int member) {
        const int rank = among.rank(member), ranks = fabric.topology().ranks();
        return fabric::Box{rank, turn * static_cast<std::uint32_t>(ranks) + static_cast<std::uint32_t>(rank)};
    };
    const Range own = of_member(shares, among.me);
    const fabric::Cipher room = fabric.cipher(group.total());
    if (own.size > 0 && among.size() > 1)
        fabric.seal(room.part(0, fabric::sealed_bytes(own.size)), own.of(partial.value), box(among.me));
    auto arrived = [&](int member, fabric::Cipher sealed) {
        if (sealed.size() > 0) fabric.open(of_member(shares, member).of(partial.value), sealed, box(member));
    };
    if (by == Spread::ring)
        co_await ring(fabric, group, room, arrived);
    else
        co_await doubling(fabric, group, room, arrived);
}

Task gather_shares(Edges& edges, Among among, Partial& partial, Shares shares, int at) {
    const std::size_t element = partial.reduction->element;
    if (among.me != at) {
        const PlainRoom own = of_member(shares, among.me).of(partial.value);
        co_await pass(edges, among.rank(at), own, 0, {}, element, {});
        co_return;
    }
    std::vector<Edges::Receiving> receiving;
    for (int member = 0; member < among.size(); ++member) {
        if (member == at) continue;
        const PlainRoom room = of_member(shares, member).of(partial.value);
        for (auto& one : receive_segments(edges, among.rank(member), room, element)) receiving.push_back(one);
    }
    for (const Edges::Receiving& one : receiving) co_await edges.finish(one);
}

}  // namespace mpisec::coll
