// MPI_Dist_graph_create (MPI standard section 8.5.4): every rank may name any edges. They are the program's
// values, so they travel sealed: all ranks gather all edges, and each makes the graph from its own.
#include <vector>

#include "shim/calls/entry.hpp"
#include "shim/calls/topology_calls.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/communicators/assertions.hpp"
#include "shim/communicators/construction.hpp"
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

/// Every rank's edges, in the order of ranks.
int gather_edges(MPI_Comm comm, int size, const std::vector<Edge>& own, std::vector<Edge>& all) {
    const int bytes = static_cast<int>(own.size() * sizeof(Edge));
    std::vector<int> counts(static_cast<std::size_t>(size)), places(counts);
    if (int code = run_collective(plan::Allgather(dist_graph_create, &bytes, sizeof bytes, constants.byte,
                                                  counts.data(), sizeof bytes, constants.byte, comm));
        code != MPI_SUCCESS)
        return code;
    int total = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        places[rank] = total;
        total += counts[rank];
    }
    all.resize(static_cast<std::size_t>(total) / sizeof(Edge));
    return run_collective(plan::Allgatherv(dist_graph_create, own.data(), bytes, constants.byte, all.data(),
                                           counts.data(), places.data(), constants.byte, comm));
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
    std::vector<Edge> all;
    if (int code = gather_edges(
            comm, parent->size,
            edges_of_arguments(n, sources, degrees, destinations, weighted ? weights : nullptr), all);
        code != MPI_SUCCESS)
        return code;
    Ends in, out;
    for (const Edge& edge : all) {
        if (edge.to == parent->rank) in.add(edge.from, edge.weight);
        if (edge.from == parent->rank) out.add(edge.to, edge.weight);
    }
    return make_dist_graph(
        dist_graph_create, comm,
        {static_cast<int>(in.ranks.size()), in.ranks.data(), in.weights_argument(weighted),
         static_cast<int>(out.ranks.size()), out.ranks.data(), out.weights_argument(weighted), true},
        info, newcomm);
}

}  // namespace mpisec::shim
