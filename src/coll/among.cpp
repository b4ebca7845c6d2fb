#include "coll/among.hpp"

#include <algorithm>
#include <numeric>

#include "coll/folded.hpp"

namespace mpisec::coll {
using fabric::Plain;
using fabric::PlainRoom;
using fabric::Task;

std::vector<Range> segments(std::size_t bytes, std::size_t element) {
    const std::size_t most = std::max<std::size_t>(segment_bytes / element, 1) * element;
    std::vector<Range> all;
    for (std::size_t at = 0; at < bytes; at += most) all.push_back({at, std::min(most, bytes - at)});
    return all;
}

std::vector<fabric::Pending> send_segments(Edges& edges, int to, Plain out, std::size_t element) {
    std::vector<fabric::Pending> sending;
    for (const Range& part : segments(out.size(), element))
        sending.push_back(edges.send(to, out.subspan(part.offset, part.size)));
    return sending;
}

std::vector<Edges::Receiving> receive_segments(Edges& edges, int from, PlainRoom in, std::size_t element) {
    std::vector<Edges::Receiving> receiving;
    for (const Range& part : segments(in.size(), element))
        receiving.push_back(edges.receive(from, part.of(in)));
    return receiving;
}

Among everybody(const fabric::Fabric& fabric) {
    Among all{std::vector<int>(static_cast<std::size_t>(fabric.topology().ranks())), fabric.rank()};
    std::iota(all.ranks.begin(), all.ranks.end(), 0);
    return all;
}

Among across_nodes(const fabric::Fabric& fabric, int local) {
    const fabric::Topology& topology = fabric.topology();
    Among all{{}, fabric.node()};
    for (int node = 0; node < topology.nodes(); ++node)
        all.ranks.push_back(topology.members(node)[static_cast<std::size_t>(local)]);
    return all;
}

Task pass(Edges& edges, int to, Plain out, int from, PlainRoom in, std::size_t element,
          std::function<void(Range)> arrived) {
    const std::vector<Range> in_parts = segments(in.size(), element);
    const std::vector<Edges::Receiving> receiving = receive_segments(edges, from, in, element);
    const std::vector<fabric::Pending> sending = send_segments(edges, to, out, element);
    for (std::size_t i = 0; i < in_parts.size(); ++i) {
        co_await edges.finish(receiving[i]);
        if (i < sending.size()) co_await sending[i];
        arrived(in_parts[i]);
    }
    for (std::size_t i = in_parts.size(); i < sending.size(); ++i) co_await sending[i];
}

Task reduce_to_first(Edges& edges, Among among, Partial& partial) {
    const std::size_t element = partial.reduction->element;
    for (int distance = 1; distance < among.size(); distance *= 2) {
        if (among.me & distance) {
            co_await pass(edges, among.rank(among.me - distance), partial.value, 0, {}, element, {});
            co_return;
        }
        if (among.me + distance >= among.size()) continue;
        co_await pass(edges, 0, {}, among.rank(among.me + distance), partial.spare, element,
                      [&](Range part) { partial.combine(part, false); });
        partial.turn(false);
    }
}

Task reduce_to_all(Edges& edges, Among among, Partial& partial) {
    const std::size_t element = partial.reduction->element;
    const Folded folded(among.size());
    co_await fold(edges, among, folded, partial);
    if (folded.rests(among.me)) {
        co_await pass(edges, 0, {}, among.rank(among.me + 1), partial.value, element, [](Range) {});
        co_return;
    }
    const int place = folded.place(among.me);
    for (int distance = 1; distance < folded.places(); distance *= 2) {
        const int peer = among.rank(folded.member(place ^ distance));
        const bool lower = place & distance;
        co_await pass(edges, peer, partial.value, peer, partial.spare, element,
                      [&](Range part) { partial.combine(part, lower); });
        partial.turn(lower);
    }
    if (folded.stands_for_two(among.me))
        co_await pass(edges, among.rank(among.me - 1), partial.value, 0, {}, element, {});
}

Task prefix(Edges& edges, Among among, Partial& partial) {
    for (int distance = 1; distance < among.size(); distance *= 2) {
        const bool sends = among.me + distance < among.size(), receives = among.me >= distance;
        co_await pass(edges, sends ? among.rank(among.me + distance) : 0, sends ? partial.value : Plain(),
                      receives ? among.rank(among.me - distance) : 0, receives ? partial.spare : PlainRoom(),
                      partial.reduction->element, [&](Range part) { partial.combine(part, true); });
    }
}

Task prefix_before(Edges& edges, Among among, Partial& partial, PlainRoom before) {
    fabric::Fabric& fabric = *partial.fabric;
    const fabric::Reduction& reduction = *partial.reduction;
    for (int distance = 1; distance < among.size(); distance *= 2) {
        const bool sends = among.me + distance < among.size(), receives = among.me >= distance;
        const bool sends_again = among.me + 2 * distance < among.size();
        const PlainRoom room = distance == 1 ? before : partial.spare;
        co_await pass(edges, sends ? among.rank(among.me + distance) : 0, sends ? partial.value : Plain(),
                      receives ? among.rank(among.me - distance) : 0, receives ? room : PlainRoom(),
                      reduction.element, [&](Range part) {
                          if (distance > 1) fabric.combine(reduction, part.of(before), part.of(room));
                          if (sends_again) fabric.combine(reduction, part.of(partial.value), part.of(room));
                      });
    }
}

}  // namespace mpisec::coll
