#include <algorithm>
#include <optional>

#include "shim/collective/collectives.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim::plan {

using coll::Collective;

namespace {

/// The neighbours of this rank in the order of the blocks in its buffers (MPI standard section 8.6);
/// MPI_PROC_NULL where a grid ends.
struct Neighbors {
    std::vector<int> sources, destinations;
    /// Places in `sources` in the order in which messages of one neighbour match. In a grid, a message that is sent in the
    /// positive direction arrives from the negative one, even where both neighbours are the same rank.
    std::vector<int> order;
};

Neighbors in_grid(MPI_Comm comm) {
    int dimensions = 0;
    real.Cartdim_get(comm, &dimensions);
    Neighbors found;
    for (int d = 0; d < dimensions; ++d) {
        int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
        real.Cart_shift(comm, d, 1, &below, &above);
        found.sources.insert(found.sources.end(), {below, above});
        found.order.insert(found.order.end(), {2 * d + 1, 2 * d});
    }
    found.destinations = found.sources;
    return found;
}

Neighbors in_graph(MPI_Comm comm, int rank) {
    int count = 0;
    real.Graph_neighbors_count(comm, rank, &count);
    Neighbors found;
    found.sources.resize(static_cast<std::size_t>(count));
    real.Graph_neighbors(comm, rank, count, found.sources.data());
    found.destinations = found.sources;
    return found;
}

Neighbors in_dist_graph(MPI_Comm comm) {
    int in = 0, out = 0, weighted = 0;
    real.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    Neighbors found;
    found.sources.resize(static_cast<std::size_t>(in) + 1);
    found.destinations.resize(static_cast<std::size_t>(out) + 1);
    std::vector<int> in_weights(found.sources.size()), out_weights(found.destinations.size());
    real.Dist_graph_neighbors(comm, in, found.sources.data(), in_weights.data(), out,
                              found.destinations.data(), out_weights.data());
    found.sources.pop_back();
    found.destinations.pop_back();
    return found;
}

std::optional<Neighbors> neighbors_of(const Communicator& comm) {
    int kind = MPI_UNDEFINED;
    real.Topo_test(comm.handle, &kind);
    if (kind == MPI_CART) return in_grid(comm.handle);
    std::optional<Neighbors> found;
    if (kind == MPI_GRAPH) found = in_graph(comm.handle, comm.rank);
    if (kind == MPI_DIST_GRAPH) found = in_dist_graph(comm.handle);
    for (std::size_t i = 0; found && i < found->sources.size(); ++i)
        found->order.push_back(static_cast<int>(i));
    return found;
}

Plan make(const char* procedure, Collective collective, MPI_Comm comm, Neighbors& neighbors) {
    Plan plan = std::make_unique<CollectivePlan>(procedure, collective, comm);
    if (!plan->good()) return plan;
    std::optional<Neighbors> found;
    if (!plan->comm->inter) found = neighbors_of(*plan->comm);
    if (!found) plan->note(MPI_ERR_TOPOLOGY);
    if (found) neighbors = std::move(*found);
    return plan;
}

/// The blocks at these places, without those of MPI_PROC_NULL; `who` gets their ranks.
ElementBlocks real_ones(const ElementBlocks& blocks, const std::vector<int>& ranks,
                        const std::vector<int>& places, std::vector<int>& who) {
    ElementBlocks chosen;
    for (int place : places) {
        const auto i = static_cast<std::size_t>(place);
        if (ranks[i] == MPI_PROC_NULL) continue;
        who.push_back(ranks[i]);
        chosen.push_back(blocks[i]);
    }
    return chosen;
}

std::vector<int> all_places(std::size_t n) {
    std::vector<int> places(n);
    for (std::size_t i = 0; i < n; ++i) places[i] = static_cast<int>(i);
    return places;
}

Plan allgather(Plan plan, const Neighbors& neighbors, const Elements& own, const ElementBlocks& from) {
    for (int rank : neighbors.destinations)
        if (rank != MPI_PROC_NULL) plan->call.destinations.push_back(rank);
    const fabric::Plaintext data =
        plan->call.destinations.empty() ? plan->give_to_nobody(own) : plan->give(own);
    plan->call.data = {const_cast<std::uint8_t*>(data.data()), data.size()};
    plan->call.from = plan->take(real_ones(from, neighbors.sources, neighbors.order, plan->call.sources));
    return plan;
}

Plan alltoall(Plan plan, const Neighbors& neighbors, const ElementBlocks& to, const ElementBlocks& from) {
    plan->call.to =
        plan->give(real_ones(to, neighbors.destinations, all_places(to.size()), plan->call.destinations));
    plan->call.from = plan->take(real_ones(from, neighbors.sources, neighbors.order, plan->call.sources));
    return plan;
}

int count(const std::vector<int>& ranks) {
    return static_cast<int>(ranks.size());
}

}  // namespace

Plan Neighbor_allgather(const char* procedure, const void* sendbuf, MPI_Count sendcount,
                        MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                        MPI_Comm comm) {
    Neighbors all;
    Plan plan = make(procedure, Collective::neighbor_allgather, comm, all);
    if (!plan->good()) return plan;
    return allgather(std::move(plan), all, {const_cast<void*>(sendbuf), sendcount, sendtype},
                     equal_blocks(recvbuf, recvcount, recvtype, count(all.sources)));
}

Plan Neighbor_allgatherv(const char* procedure, const void* sendbuf, MPI_Count sendcount,
                         MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Displacements displs,
                         MPI_Datatype recvtype, MPI_Comm comm) {
    Neighbors all;
    Plan plan = make(procedure, Collective::neighbor_allgather, comm, all);
    if (!plan->good()) return plan;
    plan->call.equal_blocks = false;
    return allgather(std::move(plan), all, {const_cast<void*>(sendbuf), sendcount, sendtype},
                     unequal_blocks(recvbuf, recvcounts, displs, recvtype, count(all.sources)));
}

Plan Neighbor_alltoall(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                       void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    Neighbors all;
    Plan plan = make(procedure, Collective::neighbor_alltoall, comm, all);
    if (!plan->good()) return plan;
    return alltoall(std::move(plan), all, equal_blocks(sendbuf, sendcount, sendtype, count(all.destinations)),
                    equal_blocks(recvbuf, recvcount, recvtype, count(all.sources)));
}

Plan Neighbor_alltoallv(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
                        MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Displacements rdispls,
                        MPI_Datatype recvtype, MPI_Comm comm) {
    Neighbors all;
    Plan plan = make(procedure, Collective::neighbor_alltoall, comm, all);
    if (!plan->good()) return plan;
    plan->call.equal_blocks = false;
    return alltoall(std::move(plan), all,
                    unequal_blocks(sendbuf, sendcounts, sdispls, sendtype, count(all.destinations)),
                    unequal_blocks(recvbuf, recvcounts, rdispls, recvtype, count(all.sources)));
}

Plan Neighbor_alltoallw(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
                        const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts,
                        Displacements rdispls, const MPI_Datatype* recvtypes, MPI_Comm comm) {
    Neighbors all;
    Plan plan = make(procedure, Collective::neighbor_alltoall, comm, all);
    if (!plan->good()) return plan;
    plan->call.equal_blocks = false;
    return alltoall(std::move(plan), all,
                    typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, count(all.destinations)),
                    typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, count(all.sources)));
}

}  // namespace mpisec::shim::plan
