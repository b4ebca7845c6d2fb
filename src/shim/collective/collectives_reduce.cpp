#include <algorithm>
#include <numeric>

#include "shim/collective/collectives.hpp"
#include "shim/collective/collectives_inter.hpp"
#include "shim/collective/reduction.hpp"
#include "shim/pmpi/constants.hpp"

namespace mpisec::shim::plan {

using coll::Collective;

namespace {

/// A plan of `collective` that reduces.
Plan make(const char* procedure, Collective collective, MPI_Comm comm, MPI_Count count, MPI_Datatype type,
          MPI_Op op) {
    Plan plan = std::make_unique<CollectivePlan>(procedure, collective, comm);
    if (!plan->good()) return plan;
    if (count < 0) plan->note(MPI_ERR_COUNT);
    plan->reduce(type, op, count != 0);
    return plan;
}

Elements input(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type) {
    return {sendbuf == MPI_IN_PLACE ? recvbuf : const_cast<void*>(sendbuf), count, type};
}

/// Rank r's part of a vector of elements, and how many elements come before it.
struct Parts {
    std::vector<MPI_Count> count;
    MPI_Count before(int rank) const {
        return std::accumulate(count.begin(), count.begin() + rank, MPI_Count{0});
    }
    MPI_Count all() const { return before(static_cast<int>(count.size())); }
};

/// Every rank gets all vectors of the other group and reduces them; `part` of the result is its own.
Plan reduce_remote(Plan plan, const Elements& own, const Parts& parts, int part, void* recvbuf) {
    const std::size_t element = plan->call.reduction->element;
    const fabric::Plaintext vector = plan->give(own);
    const std::size_t remote = plan->comm->remote_members.size(), bytes = vector.size();
    inter::all_take_part(*plan);
    plan->collective = Collective::alltoall;
    const fabric::PlaintextBuffer vectors = plan->scratch(remote * bytes);
    coll::Blocks from{vectors.data(), {}, std::vector<std::size_t>(remote, bytes)};
    for (std::size_t i = 0; i < remote; ++i) from.offset.push_back(i * bytes);
    plan->call.to = inter::of_remote(*plan, {writable(vector).data(), std::vector<std::size_t>(remote),
                                             std::vector<std::size_t>(remote, bytes)});
    plan->call.from = inter::of_remote(*plan, from);
    inter::reduce_vectors(*plan, vectors, bytes);
    const std::size_t first = static_cast<std::size_t>(parts.before(part)) * element;
    const MPI_Count count = parts.count[static_cast<std::size_t>(part)];
    if (remote > 0 && bytes > 0)
        plan->unpack_later(
            vectors.subspan((remote - 1) * bytes + first, static_cast<std::size_t>(count) * element),
            {recvbuf, count, own.type});
    return plan;
}

Plan reduce_to_remote_root(Plan plan, const Elements& own, void* recvbuf, int root) {
    const inter::Role role = inter::take_part(*plan, root);
    plan->collective = Collective::gather;
    if (role == inter::Role::leaf) plan->call.data = writable(plan->give(own));
    if (role != inter::Role::root) return plan;
    const std::size_t remote = plan->comm->remote_members.size();
    const std::size_t bytes = static_cast<std::size_t>(own.count) * plan->call.reduction->element;
    const fabric::PlaintextBuffer vectors = plan->scratch(remote * bytes);
    coll::Blocks from{vectors.data(), {}, std::vector<std::size_t>(remote, bytes)};
    for (std::size_t i = 0; i < remote; ++i) from.offset.push_back(i * bytes);
    plan->call.from = inter::behind_root(from);
    plan->call.equal_blocks = false;
    inter::reduce_vectors(*plan, vectors, bytes);
    if (remote > 0) plan->unpack_later(vectors.last(bytes), {recvbuf, own.count, own.type});
    return plan;
}

/// A reduction by MPIX_EQUAL, whose result is one int, on the root or on all ranks.
Plan equality(Plan plan, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, int root) {
    if (!plan->good() || !plan->check_root(root, plan->comm->size)) return plan;
    plan->call.root = root;
    const bool has_result = plan->collective == Collective::allreduce || plan->comm->rank == root;
    plan->reduce_equality(input(sendbuf, recvbuf, count, type),
                          has_result ? static_cast<int*>(recvbuf) : nullptr);
    return plan;
}

/// Inclusive or exclusive, as the plan says.
Plan scan(Plan plan, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type) {
    if (!plan->good()) return plan;
    if (plan->comm->inter) {
        plan->note(MPI_ERR_COMM);
        return plan;
    }
    plan->forbid_same(sendbuf, recvbuf, count);
    const Elements own = input(sendbuf, recvbuf, count, type);
    // On rank 0 an exclusive scan has no result, and its receive buffer must not be touched.
    const bool no_result = plan->collective == Collective::exscan && plan->comm->rank == 0;
    plan->call.data = no_result ? plan->scratch(own) : plan->change(own, {recvbuf, count, type});
    return plan;
}

Plan reduce_scatter(Plan plan, const void* sendbuf, void* recvbuf, const Parts& parts, MPI_Datatype type) {
    if (!plan->good()) return plan;
    if (*std::min_element(parts.count.begin(), parts.count.end()) < 0) {
        plan->note(MPI_ERR_COUNT);
        return plan;
    }
    if (!plan->comm->inter) plan->forbid_same(sendbuf, recvbuf, parts.all());
    const Elements own = input(sendbuf, recvbuf, parts.all(), type);
    const int rank = plan->comm->rank;
    if (plan->comm->inter) return reduce_remote(std::move(plan), own, parts, rank, recvbuf);
    const std::size_t element = plan->call.reduction->element;
    plan->call.data = plan->scratch(own);
    if (!plan->good()) return plan;
    std::size_t at = 0;
    for (MPI_Count count : parts.count) {
        plan->call.from.offset.push_back(at);
        plan->call.from.size.push_back(plan->call.data.empty() ? 0
                                                               : static_cast<std::size_t>(count) * element);
        at += plan->call.from.size.back();
    }
    plan->call.from.base = plan->call.data.data();
    plan->unpack_later(plan->call.from.of(rank),
                       {recvbuf, parts.count[static_cast<std::size_t>(rank)], type});
    return plan;
}

}  // namespace

Plan Reduce(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
            MPI_Op op, int root, MPI_Comm comm) {
    Plan plan = std::make_unique<CollectivePlan>(procedure, Collective::reduce, comm);
    if (plan->good() && plan->comm->inter && root == MPI_PROC_NULL) {  // its other arguments do not matter
        inter::take_part(*plan, root);
        return plan;
    }
    if (plan->good() && count < 0) plan->note(MPI_ERR_COUNT);
    if (plan->good() && is_equality(op) && !plan->comm->inter)
        return equality(std::move(plan), sendbuf, recvbuf, count, type, root);
    if (plan->good()) plan->reduce(type, op, count != 0);
    if (!plan->good()) return plan;
    if (plan->comm->inter)
        return reduce_to_remote_root(std::move(plan), {const_cast<void*>(sendbuf), count, type}, recvbuf,
                                     root);
    if (!plan->check_root(root, plan->comm->size)) return plan;
    plan->call.root = root;
    if (plan->comm->rank == root) plan->forbid_same(sendbuf, recvbuf, count);
    const Elements own = input(sendbuf, recvbuf, count, type);
    plan->call.data =
        plan->comm->rank == root ? plan->change(own, {recvbuf, count, type}) : plan->scratch(own);
    return plan;
}

Plan Allreduce(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
               MPI_Op op, MPI_Comm comm) {
    if (is_equality(op)) {
        Plan plan = std::make_unique<CollectivePlan>(procedure, Collective::allreduce, comm);
        if (plan->good() && count < 0) plan->note(MPI_ERR_COUNT);
        if (!plan->good() || !plan->comm->inter)
            return equality(std::move(plan), sendbuf, recvbuf, count, type, 0);
    }
    Plan plan = make(procedure, Collective::allreduce, comm, count, type, op);
    if (!plan->good()) return plan;
    if (!plan->comm->inter) plan->forbid_same(sendbuf, recvbuf, count);
    const Elements own = input(sendbuf, recvbuf, count, type);
    if (plan->comm->inter) return reduce_remote(std::move(plan), own, {{count}}, 0, recvbuf);
    plan->call.data = plan->change(own, {recvbuf, count, type});
    return plan;
}

Plan Reduce_scatter(const char* procedure, const void* sendbuf, void* recvbuf, Counts recvcounts,
                    MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::reduce_scatter, comm, 1, type, op);
    Parts parts;
    for (int rank = 0; plan->good() && rank < plan->comm->size; ++rank)
        parts.count.push_back(recvcounts[rank]);
    plan->call.equal_blocks = false;
    return reduce_scatter(std::move(plan), sendbuf, recvbuf, parts, type);
}

Plan Reduce_scatter_block(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                          MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    Plan plan = make(procedure, Collective::reduce_scatter, comm, recvcount, type, op);
    Parts parts;
    if (plan->good()) parts.count.assign(static_cast<std::size_t>(plan->comm->size), recvcount);
    return reduce_scatter(std::move(plan), sendbuf, recvbuf, parts, type);
}

Plan Scan(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
          MPI_Op op, MPI_Comm comm) {
    return scan(make(procedure, Collective::scan, comm, count, type, op), sendbuf, recvbuf, count, type);
}

Plan Exscan(const char* procedure, const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
            MPI_Op op, MPI_Comm comm) {
    return scan(make(procedure, Collective::exscan, comm, count, type, op), sendbuf, recvbuf, count, type);
}

}  // namespace mpisec::shim::plan
