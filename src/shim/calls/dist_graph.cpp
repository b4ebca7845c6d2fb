// MPI_Dist_graph_create (MPI standard section 8.5.4): every rank may name any edges. They are the program's
// values, so they travel sealed, to the ranks at their ends, and each makes the graph from its own.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "shim/calls/entry.hpp"
#include "shim/calls/topology_calls.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/communicators/assertions.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/p2p/failures.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* dist_graph_create = "MPI_Dist_graph_create";

struct Edge {
    std::int32_t from, to, weight;
};

std::vector<Edge> edges_of_arguments(int n, const int* sources, const int* degrees, const int* destinations,
                                     const int* weights) {
    std::vector<Edge> edges;
    for (int i = 0, k = 0; i < n; ++i)
        for (int j = 0; j < degrees[i]; ++j, ++k)
            edges.push_back({sources[i], destinations[k], weights ? weights[k] : 0});
    return edges;
}

/// Bytes for, or from, each rank, one after another.
struct Parcels {
    std::vector<MPI_Count> bytes;
    std::vector<MPI_Aint> places;
    std::vector<Edge> edges;
    void lay_out() {
        std::exclusive_scan(bytes.begin(), bytes.end(), places.begin(), MPI_Aint{0});
        edges.resize(static_cast<std::size_t>(places.back() + bytes.back()) / sizeof(Edge));
    }
};

constexpr int edge_bytes = sizeof(Edge);

/// Each edge once for each rank that it begins or ends at.
Parcels pack(const std::vector<Edge>& edges, std::size_t ranks) {
    Parcels out{std::vector<MPI_Count>(ranks), std::vector<MPI_Aint>(ranks), {}};
    auto for_each_end = [&](auto use) {
        for (const Edge& edge : edges) {
            use(edge, static_cast<std::size_t>(edge.from));
            if (edge.to != edge.from) use(edge, static_cast<std::size_t>(edge.to));
        }
    };
    for_each_end([&](const Edge&, std::size_t rank) { out.bytes[rank] += edge_bytes; });
    out.lay_out();
    std::vector<MPI_Aint> next = out.places;
    for_each_end([&](const Edge& edge, std::size_t rank) {
        out.edges[static_cast<std::size_t>(next[rank]) / sizeof(Edge)] = edge;
        next[rank] += edge_bytes;
    });
    return out;
}

/// The edges that begin or end here, in the order of the ranks that named them. Nothing, on all ranks, where one of them has named a rank
/// that does not exist. Returns an error code that was not raised.
int exchange_edges(Communicator& parent, std::vector<Edge> named, std::vector<Edge>& here) {
    const auto is_rank = [&](std::int32_t rank) { return rank >= 0 && rank < parent.size; };
    const bool good =
        std::ranges::all_of(named, [&](const Edge& edge) { return is_rank(edge.from) && is_rank(edge.to); });
    if (!good) named.clear();
    const auto ranks = static_cast<std::size_t>(parent.size);
    Parcels out = pack(named, ranks), in{std::vector<MPI_Count>(ranks), std::vector<MPI_Aint>(ranks), {}};
    constexpr MPI_Count item = sizeof in.bytes[0];
    const int counted = run_unraised(plan::Alltoall(dist_graph_create, out.bytes.data(), item, constants.byte,
                                                    in.bytes.data(), item, constants.byte, parent.handle));
    const AllLearned all =
        tell_learned(dist_graph_create, parent, counted == MPI_SUCCESS && !good ? MPI_ERR_RANK : counted);
    // A rank that did not hear of the others' errors waits for the edges.
    if (is_failure(all.code)) return all.code;
    if (counted != MPI_SUCCESS) std::ranges::fill(in.bytes, 0);
    in.lay_out();
    const int code = run_unraised(plan::Alltoallv(
        dist_graph_create, out.edges.data(), out.bytes.data(), out.places.data(), constants.byte,
        in.edges.data(), in.bytes.data(), in.places.data(), constants.byte, parent.handle));
    here = std::move(in.edges);
    if (all.code != MPI_SUCCESS) return all.code;
    return code == MPI_SUCCESS ? all.told : code;
}

/// This rank's neighbours at one end of its edges.
struct Ends {
    std::vector<int> ranks, weights;
    void add(int rank, int weight) {
        ranks.push_back(rank);
        weights.push_back(weight);
    }
    int* weights_argument(bool weighted) {
        if (!weighted) return constants.unweighted;
        return weights.empty() ? constants.weights_empty : weights.data();
    }
};

}  // namespace

int Dist_graph_create(MPI_Comm comm, int n, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, MPI_Info info, int /*reorder*/, MPI_Comm* newcomm) {
    Communicator* parent = find_communicator(comm);
    const HintsForLibrary hints(info);
    auto call = [&](MPI_Comm* made) {
        return real.Dist_graph_create(comm, n, sources, degrees, destinations, weights, hints.get(), 0, made);
    };
    if (comm == constants.comm_null) return call(newcomm);
    if (auto error = bad_arguments(dist_graph_create, parent, newcomm)) return *error;
    if (parent->inter) return raise(parent, MPI_ERR_COMM);
    // Inside a node the library exchanges the edges, so this rank's edges are not known here.
    if (!parent->crosses)
        return construct(begin_construction(dist_graph_create, *parent, membership_of(*parent), std::nullopt),
                         newcomm, call);
    const bool weighted = weights != constants.unweighted;
    std::vector<Edge> here;
    const int code = exchange_edges(
        *parent, edges_of_arguments(n, sources, degrees, destinations, weighted ? weights : nullptr), here);
    return construct_learned(dist_graph_create, *parent, code, newcomm, [&] {
        Ends in, out;
        for (const Edge& edge : here) {
            if (edge.to == parent->rank) in.add(edge.from, edge.weight);
            if (edge.from == parent->rank) out.add(edge.to, edge.weight);
        }
        return make_dist_graph(
            dist_graph_create, comm,
            {static_cast<int>(in.ranks.size()), in.ranks.data(), in.weights_argument(weighted),
             static_cast<int>(out.ranks.size()), out.ranks.data(), out.weights_argument(weighted), true},
            info, newcomm);
    });
}

}  // namespace mpisec::shim
