#include "coll/neighbor/neighbor_links.hpp"

#include <algorithm>
#include <tuple>

#include "coll/patterns/nodes.hpp"
#include "coll/patterns/numbers.hpp"

namespace mpisec::coll {
namespace {

using Numbers = std::vector<std::size_t>;

/// How many edges each rank of the node has: leaving, then entering.
fabric::Task count(fabric::Fabric& fabric, const Call& call, Numbers& counts, bool* complete) {
    Numbers mine;
    mine.push_back(call.destinations.size());
    mine.push_back(call.sources.size());
    counts.resize(2 * fabric.node_peers().size());
    co_await share_numbers(fabric, mine, 2 * static_cast<std::size_t>(fabric.local()), counts, complete);
}

/// A rank's edges as numbers, peer and size of each.
Numbers numbers_of(const Call& call, bool once) {
    Numbers numbers;
    for (std::size_t i = 0; i < call.destinations.size(); ++i) {
        numbers.push_back(static_cast<std::size_t>(call.destinations[i]));
        numbers.push_back(once ? call.data.size() : call.to.size[i]);
    }
    for (std::size_t i = 0; i < call.sources.size(); ++i) {
        numbers.push_back(static_cast<std::size_t>(call.sources[i]));
        numbers.push_back(call.from.size[i]);
    }
    return numbers;
}

/// Sorts the links and gives them places in shared memory; returns how many bytes that takes. `here`: this node.
std::size_t lay_out(const fabric::Topology& topology, std::vector<Link>& links, int here, int Link::*other,
                    bool once) {
    auto group = [&](const Link& link) {
        return std::tuple(node_after(topology, topology.node(link.*other), -here), link.from);
    };
    std::sort(links.begin(), links.end(), [&](const Link& a, const Link& b) {
        return std::tuple(group(a), a.to, a.place) < std::tuple(group(b), b.to, b.place);
    });
    std::size_t total = 0;
    for (std::size_t i = 0; i < links.size(); ++i) {
        const bool again = once && i > 0 && group(links[i]) == group(links[i - 1]);
        links[i].offset = again ? links[i - 1].offset : total;
        if (!again) total += links[i].bytes;
    }
    return total;
}

}  // namespace

fabric::Task make_links(fabric::Fabric& fabric, const Call& call, bool once, Links& links) {
    bool complete = true;
    Numbers counts;
    co_await count(fabric, call, counts, &complete);
    if (!complete) co_return;
    std::size_t before = 0, all = 0;  // numbers
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (i < 2 * static_cast<std::size_t>(fabric.local())) before += 2 * counts[i];
        all += 2 * counts[i];
    }
    Numbers numbers(all);
    co_await share_numbers(fabric, numbers_of(call, once), before, numbers, &complete);
    if (!complete) co_return;

    auto next = numbers.begin();
    for (std::size_t local = 0; local < fabric.node_peers().size(); ++local) {
        const int rank = fabric.node_peers()[local];
        for (std::size_t place = 0; place < counts[2 * local]; ++place, next += 2)
            links.out.push_back({rank, static_cast<int>(next[0]), next[1], place, 0});
        for (std::size_t place = 0; place < counts[2 * local + 1]; ++place, next += 2)
            links.in.push_back({static_cast<int>(next[0]), rank, next[1], place, 0});
    }
    links.out_bytes = lay_out(fabric.topology(), links.out, fabric.node(), &Link::to, once);
    links.in_bytes = lay_out(fabric.topology(), links.in, fabric.node(), &Link::from, once);
    for (const Link& link : links.in)
        if (fabric.topology().same_node(link.from, link.to)) links.inside_bytes = link.offset + link.bytes;
}

}  // namespace mpisec::coll
