// Broadcast of m bytes to p ranks on N nodes of k. Bytes are what one rank sends at most.
//
//   binomial           the root seals once, the sealed block goes down a binomial tree of all ranks,
//                      everybody opens. Rounds ceil(lg p), bytes m ceil(lg p), 1 seal, 1 open
//   smp                the sealed block goes down a binomial tree of nodes; each opens it once, into shared
//                      memory. Rounds ceil(lg N), bytes m ceil(lg N), 1 seal, 1 open
//   pipeline           a chain of nodes hands on S sealed segments; the ranks of a node take turns with them.
//                      Rounds N - 2 + S, bytes m / k, seals and opens S / k
//   pipeline-tree      the same along a binary tree of nodes. Rounds 2 (lg N + S), bytes 2 m / k, S / k
//   scatter-allgather  each other node gets a slice from the root's node, then these nodes all-gather ciphertext, by
//                      k ranks of each at once. Rounds 2 N - 3, or N - 1 + ceil(lg N) for small slices,
//                      bytes m / k, seals and opens N - 1
#include "coll/bcast/bcast_large.hpp"
#include "coll/entries.hpp"
#include "coll/patterns/binomial.hpp"
#include "coll/patterns/leaders.hpp"

namespace mpisec::coll {
namespace {

fabric::Task bcast_binomial(fabric::Fabric& fabric, const Call& call) {
    const int p = fabric.topology().ranks(), place = (fabric.rank() - call.root + p) % p;
    const Binomial tree(p, place);
    auto rank = [&](int at) { return (at + call.root) % p; };
    const fabric::SealedBlock name{call.root, 0};
    const fabric::CiphertextBuffer sealed_block = fabric.ciphertext(fabric::sealed_bytes(call.data.size()));
    if (place != 0)
        co_await fabric.receive(rank(tree.parent()), sealed_block);
    else if (p > 1)
        fabric.seal(sealed_block, call.data, name);
    std::vector<fabric::Pending> sending;
    for (int child : tree.children()) sending.push_back(fabric.send(rank(child), sealed_block));
    if (place != 0) fabric.open(call.data, sealed_block, name);
    for (auto& one : sending) co_await one;
}

fabric::Task bcast_smp(fabric::Fabric& fabric, const Call& call) {
    const Leaders leaders(fabric.topology(), call.root);
    const int nodes = fabric.topology().nodes(), place = leaders.place(fabric.node());
    const bool alone = fabric.node_peers().size() == 1, root = fabric.rank() == call.root;
    const fabric::PlaintextBuffer common = alone ? call.data : fabric.shared_plaintext(call.data.size());
    std::vector<fabric::Pending> sending;
    if (leaders.lead(fabric.rank())) {
        const Binomial tree(nodes, place);
        const fabric::SealedBlock name{call.root, 0};
        const fabric::CiphertextBuffer sealed_block =
            fabric.ciphertext(fabric::sealed_bytes(call.data.size()));
        if (!root)
            co_await fabric.receive(leaders.rank(tree.parent()), sealed_block);
        else if (nodes > 1)
            fabric.seal(sealed_block, call.data, name);
        for (int child : tree.children()) sending.push_back(fabric.send(leaders.rank(child), sealed_block));
        if (!root)
            fabric.open(common, sealed_block, name);
        else if (!alone)
            fabric.copy(common, call.data);
    }
    if (!alone) {
        co_await fabric.node_barrier();
        if (!root) fabric.copy(call.data, common);
    }
    for (auto& one : sending) co_await one;
}

}  // namespace

std::span<const Entry> bcast_algorithms() {
    static constexpr Entry all[] = {{"binomial", bcast_binomial, nullptr, "naive"},
                                    {"smp", bcast_smp, nullptr, "node"},
                                    {"pipeline", bcast_pipeline},
                                    {"pipeline-tree", bcast_pipeline_tree},
                                    {"scatter-allgather", bcast_scatter_allgather}};
    return all;
}

}  // namespace mpisec::coll
