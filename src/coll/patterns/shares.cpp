#include "coll/patterns/shares.hpp"

#include "coll/patterns/folded.hpp"
#include "coll/patterns/spread.hpp"

namespace mpisec::coll {
namespace {

using fabric::PlaintextBuffer;
using fabric::Task;

/// The slices of the vector that a place keeps in recursive halving, round by round.
struct Kept {
    std::size_t all, element;
    int slices, first = 0, count = slices;

    Kept half(bool upper) const {
        return {all, element, slices, upper ? first + count / 2 : first, count / 2};
    }
    Range bytes() const {
        const std::size_t begin = slice(all, element, slices, first).offset;
        return {begin, slice(all, element, slices, first + count - 1).end() - begin};
    }
};

Range of_member(const Shares& shares, int member) {
    return shares[static_cast<std::size_t>(member)];
}

}  // namespace

Schedule recursive_halving(const Members& members, std::size_t bytes, std::size_t element) {
    const Folded folded(members, bytes);
    Schedule steps = folded.fold();
    Kept kept{bytes, element, folded.places()};
    for (int distance = 1; !folded.rests() && distance < folded.places(); distance *= 2) {
        const int peer = folded.rank_at(folded.place() ^ distance);
        const bool lower = folded.place() & distance;
        const Range given = kept.half(!lower).bytes();
        kept = kept.half(lower);
        steps.push_back({peer, given, peer, kept.bytes(), lower ? Step::What::lower : Step::What::higher});
    }
    return steps;
}

Shares shares_of_halving(const Members& members, std::size_t bytes, std::size_t element) {
    const Folded folded(members, bytes);
    Shares shares(static_cast<std::size_t>(members.size()));
    for (int place = 0; place < folded.places(); ++place) {
        Kept kept{bytes, element, folded.places()};
        for (int distance = 1; distance < folded.places(); distance *= 2) kept = kept.half(place & distance);
        shares[static_cast<std::size_t>(folded.member_at(place))] = kept.bytes();
    }
    return shares;
}

Schedule reducing_ring(const Members& members, std::size_t bytes, std::size_t element) {
    const int n = members.size(), me = members.me();
    const Shares shares = shares_of_ring(members, bytes, element);
    Schedule steps;
    for (int step = 1; step < n; ++step)
        steps.push_back({members.rank((me + 1) % n), of_member(shares, (me - step + n) % n),
                         members.rank((me - 1 + n) % n), of_member(shares, (me - step - 1 + n) % n),
                         Step::What::lower});
    return steps;
}

Shares shares_of_ring(const Members& members, std::size_t bytes, std::size_t element) {
    Shares shares;
    for (int member = 0; member < members.size(); ++member)
        shares.push_back(slice(bytes, element, members.size(), member));
    return shares;
}

Task spread_shares(Members members, Partial& partial, Shares shares, Spread by, std::uint64_t chunk) {
    if (partial.value.empty() || members.size() == 1) co_return;
    fabric::Fabric& fabric = *partial.fabric;
    Group group{members.ranks(), {}, members.me()};
    for (const Range& share : shares) group.bytes.push_back(fabric::sealed_bytes(share.size));
    auto sealed_block = [&](int member) {
        const int rank = members.rank(member), ranks = fabric.topology().ranks();
        return fabric::SealedBlock{
            rank, chunk * static_cast<std::uint64_t>(ranks) + static_cast<std::uint64_t>(rank)};
    };
    const Range own = of_member(shares, members.me());
    const fabric::CiphertextBuffer room = fabric.ciphertext(group.total());
    fabric.seal(room.part(0, fabric::sealed_bytes(own.size)), own.of(partial.value),
                sealed_block(members.me()));
    auto arrived = [&](int member, fabric::CiphertextBuffer sealed) {
        fabric.open(of_member(shares, member).of(partial.value), sealed, sealed_block(member));
    };
    if (by == Spread::ring)
        co_await ring(fabric, group, room, arrived);
    else
        co_await doubling(fabric, group, room, arrived);
    fabric.give_back(room);
}

Task gather_shares(Edges& edges, Members members, Partial& partial, Shares shares, int at) {
    const std::size_t element = partial.reduction->element;
    std::vector<Edges::Sending> sending;
    std::vector<Edges::Receiving> receiving;
    auto share = [&](int member) { return of_member(shares, member).of(partial.value); };
    if (members.me() != at) sending = send_segments(edges, members.rank(at), share(members.me()), element);
    for (int member = 0; members.me() == at && member < members.size(); ++member)
        if (member != at)
            for (auto& one : receive_segments(edges, members.rank(member), share(member), element))
                receiving.push_back(one);
    for (const auto& one : receiving) co_await edges.finish(one);
    for (const auto& one : sending) co_await edges.finish(one);
}

}  // namespace mpisec::coll
