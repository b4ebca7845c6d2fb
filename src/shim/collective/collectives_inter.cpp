#include "shim/collective/collectives_inter.hpp"

#include <numeric>

#include "shim/collective/collective_context.hpp"

namespace mpisec::shim::inter {
namespace {

/// The ranks that members of one group have in the context of both.
std::vector<int> in_context(const CollectivePlan& plan, Ranks members) {
    return places_in(members, plan.comm->collective_context->members());
}

}  // namespace

Role take_part(CollectivePlan& plan, int root) {
    const std::vector<int> local = in_context(plan, plan.comm->members),
                           remote = in_context(plan, plan.comm->remote_members);
    const int me = local[static_cast<std::size_t>(plan.comm->rank)];
    if (root == MPI_PROC_NULL) {
        plan.participants = {me};
        plan.takes_part = false;
        return Role::bystander;
    }
    if (root == MPI_ROOT) {
        plan.participants = remote;
        plan.participants.insert(plan.participants.begin(), me);
        return Role::root;
    }
    if (!plan.check_root(root, static_cast<int>(remote.size()))) return Role::bystander;
    plan.participants = local;
    plan.participants.insert(plan.participants.begin(), remote[static_cast<std::size_t>(root)]);
    return Role::leaf;
}

void all_take_part(CollectivePlan& plan) {
    plan.participants.resize(plan.comm->collective_context->members().size());
    std::iota(plan.participants.begin(), plan.participants.end(), 0);
    plan.call.equal_blocks = false;
}

coll::Blocks of_remote(const CollectivePlan& plan, const coll::Blocks& blocks) {
    const std::size_t ranks = plan.comm->collective_context->members().size();
    coll::Blocks all{blocks.base, std::vector<std::size_t>(ranks), std::vector<std::size_t>(ranks)};
    const std::vector<int> remote = in_context(plan, plan.comm->remote_members);
    for (std::size_t i = 0; i < remote.size() && i < blocks.size.size(); ++i) {
        all.offset[static_cast<std::size_t>(remote[i])] = blocks.offset[i];
        all.size[static_cast<std::size_t>(remote[i])] = blocks.size[i];
    }
    return all;
}

coll::Blocks behind_root(const coll::Blocks& blocks) {
    coll::Blocks all = blocks;
    all.offset.insert(all.offset.begin(), 0);
    all.size.insert(all.size.begin(), 0);
    return all;
}

void reduce_vectors(CollectivePlan& plan, fabric::PlaintextBuffer vectors, std::size_t bytes) {
    const fabric::Reduction* reduction = plan.call.reduction;
    plan.finally([=] {
        for (std::size_t at = bytes; bytes > 0 && at < vectors.size(); at += bytes)
            if (!reduction->combine(vectors.subspan(at, bytes), vectors.subspan(at - bytes, bytes)))
                return MPI_ERR_OP;
        return MPI_SUCCESS;
    });
}

}  // namespace mpisec::shim::inter
