#include "shim/collective/collectives.hpp"

#include "shim/collective/collective_context.hpp"
#include "shim/collective/collectives_inter.hpp"
#include "shim/pmpi/constants.hpp"

namespace mpisec::shim::plan {

using coll::Collective;

namespace {

Plan make(const char* procedure, Collective collective, MPI_Comm comm) {
    return std::make_unique<CollectivePlan>(procedure, collective, comm);
}

/// The number of ranks that blocks in arguments come from or go to: on an inter-communicator those of the remote group.
int others(const CollectivePlan& plan) {
    return plan.comm->inter ? static_cast<int>(plan.comm->remote_members.size()) : plan.comm->size;
}

Elements elements(const void* buf, MPI_Count count, MPI_Datatype type) {
    return {const_cast<void*>(buf), count, type};
}

// ---- Gather and scatter: `blocks` are significant at the root only ----

template <class Blocks>
Plan gather(Plan plan, const Elements& own, Blocks blocks, int root, bool equal) {
    if (!plan->good()) return plan;
    plan->call.equal_blocks = equal;
    if (plan->comm->inter) {
        const inter::Role role = inter::take_part(*plan, root);
        if (role == inter::Role::root) plan->call.from = inter::behind_root(plan->take(blocks()));
        if (role == inter::Role::leaf) plan->call.data = writable(plan->give(own));
        return plan;
    }
    if (!plan->check_root(root, plan->comm->size)) return plan;
    plan->call.root = root;
    if (plan->comm->rank != root) {
        plan->call.data = writable(plan->give(own));
        return plan;
    }
    const ElementBlocks all = blocks();
    plan->call.from = plan->take(all, root);
    if (own.start != MPI_IN_PLACE) plan->copy(own, all[static_cast<std::size_t>(root)]);
    return plan;
}

template <class Blocks>
Plan scatter(Plan plan, Blocks blocks, const Elements& own, int root, bool equal) {
    if (!plan->good()) return plan;
    plan->call.equal_blocks = equal;
    if (plan->comm->inter) {
        const inter::Role role = inter::take_part(*plan, root);
        if (role == inter::Role::root) plan->call.to = inter::behind_root(plan->give(blocks()));
        if (role == inter::Role::leaf) plan->call.data = plan->take(own);
        return plan;
    }
    if (!plan->check_root(root, plan->comm->size)) return plan;
    plan->call.root = root;
    if (plan->comm->rank != root) {
        plan->call.data = plan->take(own);
        return plan;
    }
    const ElementBlocks all = blocks();
    plan->call.to = plan->give(all);
    if (own.start != MPI_IN_PLACE) plan->copy(all[static_cast<std::size_t>(root)], own);
    return plan;
}

// ---- Allgather and alltoall ----

Plan allgather(Plan plan, const Elements& own, const ElementBlocks& blocks) {
    if (plan->comm->inter) {
        inter::all_take_part(*plan);
        plan->collective = Collective::alltoall;
        const fabric::Plaintext bytes = plan->give(own);
        const auto remote = static_cast<std::size_t>(others(*plan));
        plan->call.to = inter::of_remote(*plan, {writable(bytes).data(), std::vector<std::size_t>(remote),
                                                 std::vector<std::size_t>(remote, bytes.size())});
        plan->call.from = inter::of_remote(*plan, plan->take(blocks));
        return plan;
    }
    const int rank = plan->comm->rank;
    plan->call.from = plan->take(blocks, rank);
    if (own.start != MPI_IN_PLACE) plan->copy(own, blocks[static_cast<std::size_t>(rank)]);
    return plan;
}

Plan alltoall(Plan plan, bool in_place, const ElementBlocks& to, const ElementBlocks& from, bool equal) {
    plan->call.equal_blocks = equal;
    if (plan->comm->inter) {
        inter::all_take_part(*plan);
        plan->call.to = inter::of_remote(*plan, plan->give(to));
        plan->call.from = inter::of_remote(*plan, plan->take(from));
        return plan;
    }
    const int rank = plan->comm->rank;
    // In place, the blocks to send are read from a copy while the received blocks take their place.
    plan->call.to = in_place ? plan->scratch(from) : plan->give(to);
    plan->call.from = plan->take(from, rank);
    if (!in_place) plan->copy(to[static_cast<std::size_t>(rank)], from[static_cast<std::size_t>(rank)]);
    return plan;
}

}  // namespace

Plan Barrier(const char* procedure, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::barrier, comm);
    if (plan->good() && plan->comm->inter) inter::all_take_part(*plan);
    return plan;
}

Plan Bcast(const char* procedure, void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::bcast, comm);
    if (!plan->good()) return plan;
    const Elements data{buffer, count, type};
    if (plan->comm->inter) {
        const inter::Role role = inter::take_part(*plan, root);
        if (role == inter::Role::root) plan->call.data = writable(plan->give(data));
        if (role == inter::Role::leaf) plan->call.data = plan->take(data);
        return plan;
    }
    if (!plan->check_root(root, plan->comm->size)) return plan;
    plan->call.root = root;
    plan->call.data = plan->comm->rank == root ? writable(plan->give(data)) : plan->take(data);
    return plan;
}

Plan Gather(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
            void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::gather, comm);
    auto blocks = [&, n = plan->good() ? others(*plan) : 0] {
        return equal_blocks(recvbuf, recvcount, recvtype, n);
    };
    return gather(std::move(plan), elements(sendbuf, sendcount, sendtype), blocks, root, true);
}

Plan Gatherv(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
             void* recvbuf, Counts recvcounts, Displacements displs, MPI_Datatype recvtype, int root,
             MPI_Comm comm) {
    Plan plan = make(procedure, Collective::gather, comm);
    auto blocks = [&, n = plan->good() ? others(*plan) : 0] {
        return unequal_blocks(recvbuf, recvcounts, displs, recvtype, n);
    };
    return gather(std::move(plan), elements(sendbuf, sendcount, sendtype), blocks, root, false);
}

Plan Scatter(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
             void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::scatter, comm);
    auto blocks = [&, n = plan->good() ? others(*plan) : 0] {
        return equal_blocks(sendbuf, sendcount, sendtype, n);
    };
    return scatter(std::move(plan), blocks, {recvbuf, recvcount, recvtype}, root, true);
}

Plan Scatterv(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements displs,
              MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
              MPI_Comm comm) {
    Plan plan = make(procedure, Collective::scatter, comm);
    auto blocks = [&, n = plan->good() ? others(*plan) : 0] {
        return unequal_blocks(sendbuf, sendcounts, displs, sendtype, n);
    };
    return scatter(std::move(plan), blocks, {recvbuf, recvcount, recvtype}, root, false);
}

Plan Allgather(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
               void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::allgather, comm);
    if (!plan->good()) return plan;
    const int n = others(*plan);
    return allgather(std::move(plan), elements(sendbuf, sendcount, sendtype),
                     equal_blocks(recvbuf, recvcount, recvtype, n));
}

Plan Allgatherv(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                void* recvbuf, Counts recvcounts, Displacements displs, MPI_Datatype recvtype,
                MPI_Comm comm) {
    Plan plan = make(procedure, Collective::allgather, comm);
    if (!plan->good()) return plan;
    plan->call.equal_blocks = false;
    const int n = others(*plan);
    return allgather(std::move(plan), elements(sendbuf, sendcount, sendtype),
                     unequal_blocks(recvbuf, recvcounts, displs, recvtype, n));
}

Plan Allgather_of_both(const char* procedure, const void* block, MPI_Count bytes, void* blocks,
                       MPI_Comm comm) {
    Plan plan = make(procedure, Collective::allgather, comm);
    if (!plan->good()) return plan;
    inter::all_take_part(*plan);
    const ElementBlocks all = equal_blocks(
        blocks, bytes, constants.byte, static_cast<int>(plan->comm->collective_context->members().size()));
    const int rank = plan->comm->collective_context->rank();
    plan->call.from = plan->take(all, rank);
    plan->copy(elements(block, bytes, constants.byte), all[static_cast<std::size_t>(rank)]);
    return plan;
}

Plan Alltoall(const char* procedure, const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
              void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::alltoall, comm);
    if (!plan->good()) return plan;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const int n = others(*plan);
    return alltoall(std::move(plan), in_place,
                    in_place ? ElementBlocks{} : equal_blocks(sendbuf, sendcount, sendtype, n),
                    equal_blocks(recvbuf, recvcount, recvtype, n), true);
}

Plan Alltoallv(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
               MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Displacements rdispls,
               MPI_Datatype recvtype, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::alltoall, comm);
    if (!plan->good()) return plan;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const int n = others(*plan);
    return alltoall(std::move(plan), in_place,
                    in_place ? ElementBlocks{} : unequal_blocks(sendbuf, sendcounts, sdispls, sendtype, n),
                    unequal_blocks(recvbuf, recvcounts, rdispls, recvtype, n), false);
}

Plan Alltoallw(const char* procedure, const void* sendbuf, Counts sendcounts, Displacements sdispls,
               const MPI_Datatype* sendtypes, void* recvbuf, Counts recvcounts, Displacements rdispls,
               const MPI_Datatype* recvtypes, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::alltoall, comm);
    if (!plan->good()) return plan;
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const int n = others(*plan);
    return alltoall(std::move(plan), in_place,
                    in_place ? ElementBlocks{} : typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, n),
                    typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, n), false);
}

}  // namespace mpisec::shim::plan
