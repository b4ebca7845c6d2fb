// Communicators with a topology. Members, order and topology follow from the arguments alone, because MPIsec never lets the library reorder
// (which MPI allows): a new order would be agreed on in clear. What the library makes is compared (construction.hpp, S2).
#include <algorithm>
#include <cstdint>
#include <optional>

#include "shim/calls/entry.hpp"
#include "shim/calls/topology_calls.hpp"
#include "shim/communicators/assertions.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

/// The number of ranks of a Cartesian grid; nothing for invalid dimensions, or for more ranks than `limit`.
std::optional<int> grid_size(int ndims, const int* dims, int limit) {
    if (ndims < 0 || (ndims > 0 && !dims)) return std::nullopt;
    std::int64_t size = 1;
    for (int i = 0; i < ndims; ++i) {
        if (dims[i] <= 0) return std::nullopt;
        size *= dims[i];
        if (size > limit) return std::nullopt;
    }
    return static_cast<int>(size);
}

/// Row-major (MPI standard section 8.2).
std::vector<int> coordinates_of(int rank, const std::vector<int>& dims) {
    std::vector<int> coordinates(dims.size());
    for (std::size_t i = dims.size(); i-- > 0; rank /= dims[i]) coordinates[i] = rank % dims[i];
    return coordinates;
}

/// Lets the library do `call(MPI_Comm of_them, MPI_Comm* made)` on a new communicator of the first `n` ranks of `parent`.
template <class Call>
int call_on_first(const Communicator& parent, int n, MPI_Comm* made, Call call) {
    MPI_Group whole, first;
    const int range[1][3] = {{0, n - 1, 1}};
    real.Comm_group(parent.handle, &whole);
    real.Group_range_incl(whole, 1, const_cast<int(*)[3]>(range), &first);
    MPI_Comm of_them = constants.comm_null;
    int code = real.Comm_create(parent.handle, first, &of_them);
    real.Group_free(&first);
    real.Group_free(&whole);
    if (code != MPI_SUCCESS || of_them == constants.comm_null) return code;
    code = call(of_them, made);
    real.Comm_free(&of_them);
    return code;
}

/// A topology on the first `n` ranks of `parent`, made by `call(MPI_Comm of_them, MPI_Comm*)`.
template <class Call>
int construct_on_first(const char* procedure, Communicator& parent, int n, Topology topology,
                       MPI_Comm* newcomm, Call call) {
    Membership members{{parent.members.begin(), parent.members.begin() + n}, {}};
    if (n == parent.size)
        return construct(begin_construction(procedure, parent, std::move(members), std::move(topology)),
                         newcomm, [&](MPI_Comm* made) { return call(parent.handle, made); });
    // The smaller communicator is not left to the library: MPICH 5 reports the parent's group for one that it makes.
    return construct(begin_construction(procedure, parent, std::move(members), std::move(topology)), newcomm,
                     [&](MPI_Comm* made) { return call_on_first(parent, n, made, call); });
}

/// The members of this rank's part of a Cartesian grid; `remain` tells which dimensions remain.
Membership members_of_part(const Communicator& grid, const Topology& cart, const int* remain) {
    Membership part;
    for (int rank = 0; rank < grid.size; ++rank) {
        bool here = true;
        for (std::size_t i = cart.dims.size(), rest = static_cast<std::size_t>(rank); i-- > 0;) {
            const auto extent = static_cast<std::size_t>(cart.dims[i]);
            here = here && (remain[i] || rest % extent == static_cast<std::size_t>(cart.coordinates[i]));
            rest /= extent;
        }
        if (here) part.members.push_back(grid.members[static_cast<std::size_t>(rank)]);
    }
    return part;
}

Topology topology_of_part(const Topology& cart, const int* remain) {
    Topology part{.kind = MPI_CART};
    for (std::size_t i = 0; i < cart.dims.size(); ++i) {
        if (!remain[i]) continue;
        part.dims.push_back(cart.dims[i]);
        part.periods.push_back(cart.periods[i]);
        part.coordinates.push_back(cart.coordinates[i]);
    }
    return part;
}

/// Open MPI makes a graph from its neighbours like a duplicate: with the attributes of the parent, which MPI_Dist_graph_create does not
/// copy, and, in Open MPI 5, with the parent's topology, so that the graph is taken for a grid and crashes.
bool needs_bare_parent(MPI_Comm parent, [[maybe_unused]] bool exchanged) {
#if defined(OPEN_MPI)
    if (exchanged) return true;
#endif
    int kind = MPI_UNDEFINED;
    real.Topo_test(parent, &kind);
    return kind != MPI_UNDEFINED;
}

std::vector<int> listed(const int* values, int n) {
    return n > 0 ? std::vector<int>(values, values + n) : std::vector<int>{};
}

}  // namespace

int Cart_create(MPI_Comm comm, int ndims, const int* dims, const int* periods, int /*reorder*/,
                MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Cart_create";
    auto call = [&](MPI_Comm ranks, MPI_Comm* made) {
        return real.Cart_create(ranks, ndims, dims, periods, 0, made);
    };
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return call(comm, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    const std::optional<int> size = grid_size(ndims, dims, parent->size);
    if (parent->inter || !size || (ndims > 0 && !periods))
        return construct_none(procedure, *parent, newcomm, [&](MPI_Comm* made) { return call(comm, made); });
    Topology topology{.kind = MPI_CART, .dims = listed(dims, ndims), .periods = listed(periods, ndims)};
    for (int& periodic : topology.periods) periodic = periodic != 0;
    topology.coordinates = coordinates_of(parent->rank, topology.dims);
    return construct_on_first(procedure, *parent, *size, std::move(topology), newcomm, call);
}

int Cart_sub(MPI_Comm comm, const int* remain_dims, MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Cart_sub";
    auto call = [&](MPI_Comm* made) {
        const int code = real.Cart_sub(comm, remain_dims, made);
        // MPICH 4 gives a grid of no dimensions to rank 0 alone.
        return code == MPI_SUCCESS && *made == constants.comm_null
                   ? real.Cart_create(self_comm(), 0, nullptr, nullptr, 0, made)
                   : code;
    };
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return call(newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    const Topology cart = parent->inter ? Topology{} : read_topology(comm);
    if (cart.kind != MPI_CART || (!cart.dims.empty() && !remain_dims))
        return construct_none(procedure, *parent, newcomm, call);
    return construct(begin_construction(procedure, *parent, members_of_part(*parent, cart, remain_dims),
                                        topology_of_part(cart, remain_dims)),
                     newcomm, call);
}

int Graph_create(MPI_Comm comm, int nnodes, const int* index, const int* edges, int /*reorder*/,
                 MPI_Comm* newcomm) {
    constexpr const char* procedure = "MPI_Graph_create";
    auto call = [&](MPI_Comm ranks, MPI_Comm* made) {
        return real.Graph_create(ranks, nnodes, index, edges, 0, made);
    };
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return call(comm, newcomm);
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    const bool good = !parent->inter && nnodes > 0 && nnodes <= parent->size && index &&
                      index[nnodes - 1] >= 0 && (edges || index[nnodes - 1] == 0);
    if (!good)
        return construct_none(procedure, *parent, newcomm, [&](MPI_Comm* made) { return call(comm, made); });
    Topology topology{
        .kind = MPI_GRAPH, .index = listed(index, nnodes), .edges = listed(edges, index[nnodes - 1])};
    return construct_on_first(procedure, *parent, nnodes, std::move(topology), newcomm, call);
}

int make_dist_graph(const char* procedure, MPI_Comm comm, const Neighbours& ends, MPI_Info info,
                    MPI_Comm* newcomm) {
    const HintsForLibrary hints(info);
    auto call_on = [&](MPI_Comm ranks, MPI_Comm* made) {
        return real.Dist_graph_create_adjacent(ranks, ends.in, ends.sources, ends.source_weights, ends.out,
                                               ends.destinations, ends.dest_weights, hints.get(), 0, made);
    };
    Communicator* parent = find_communicator(comm);
    if (comm == constants.comm_null) return call_on(comm, newcomm);
    auto call = [&](MPI_Comm* made) {
        return parent->inter || !needs_bare_parent(comm, ends.exchanged)
                   ? call_on(comm, made)
                   : call_on_first(*parent, parent->size, made, call_on);
    };
    if (auto error = bad_arguments(procedure, parent, newcomm)) return *error;
    if (parent->inter || ends.in < 0 || ends.out < 0 || (ends.in > 0 && !ends.sources) ||
        (ends.out > 0 && !ends.destinations))
        return construct_none(procedure, *parent, newcomm, call);
    // Where only one of them is MPI_UNWEIGHTED, libraries disagree on whether the graph is unweighted.
    const bool weighted = ends.source_weights != constants.unweighted;
    const bool mixed = weighted != (ends.dest_weights != constants.unweighted);
    auto weights = [&](const int* values, int n) {
        return weighted && values && values != constants.unweighted && values != constants.weights_empty
                   ? listed(values, n)
                   : std::vector<int>(static_cast<std::size_t>(weighted ? n : 0));
    };
    std::optional<Topology> topology;
    if (!mixed)
        topology = Topology{.kind = MPI_DIST_GRAPH,
                            .sources = listed(ends.sources, ends.in),
                            .source_weights = weights(ends.source_weights, ends.in),
                            .destinations = listed(ends.destinations, ends.out),
                            .dest_weights = weights(ends.dest_weights, ends.out)};
    return construct(begin_construction(procedure, *parent, membership_of(*parent), std::move(topology)),
                     newcomm, call);
}

int Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int* sources, const int* sourceweights,
                               int outdegree, const int* destinations, const int* destweights, MPI_Info info,
                               int /*reorder*/, MPI_Comm* newcomm) {
    return make_dist_graph("MPI_Dist_graph_create_adjacent", comm,
                           {indegree, sources, sourceweights, outdegree, destinations, destweights, false},
                           info, newcomm);
}

}  // namespace mpisec::shim
