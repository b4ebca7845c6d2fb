// Communicator constructors and destructors: the MPI library makes the communicator, MPIsec learns its
// members and derives its context. What the library exchanges for that (context identifiers, groups) is
// metadata; the user's own values, MPI_Comm_split's colours and keys, travel sealed (S1).
#include <algorithm>
#include <numeric>

#include "shim/collective_space.hpp"
#include "shim/collectives.hpp"
#include "shim/communicator.hpp"
#include "shim/constants.hpp"
#include "shim/entry.hpp"
#include "shim/errors.hpp"
#include "shim/operation.hpp"
#include "shim/real.hpp"
#include "shim/requests.hpp"
#include "shim/simple_operations.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {
namespace {

/// Adopts and equips what the MPI library has just made; every member is here.
int learn(MPI_Comm newcomm, Communicator* parent, const std::string& constructor) {
    Communicator* made = adopt(newcomm, parent, constructor);
    return made ? equip(*made) : MPI_SUCCESS;
}

/// Meets the members of `comm`, lets the MPI library construct, learns the result.
template <class Construct>
int construct(const char* constructor, MPI_Comm comm, MPI_Comm* newcomm, Construct call) {
    Communicator* parent = find_communicator(comm);
    if (!parent)
        return comm == constants.comm_null
                   ? call()
                   : raise_route({Route::invalid, nullptr, MPI_ERR_COMM}, constructor);
    if (int code = meet(*parent); code != MPI_SUCCESS) return raise(parent, code);
    const int code = call();
    return code == MPI_SUCCESS ? learn(*newcomm, parent, constructor) : code;
}

/// Tells apart meetings of the same members for calls that differ by tag.
wire::ContextId with_tag(wire::ContextId context, int tag) {
    context[0] = static_cast<std::uint8_t>(context[0] ^ static_cast<unsigned>(tag));
    return context;
}

struct ColorAndKey {
    std::int32_t color;
    std::int32_t key;
};

/// The ranks of `comm` with this colour, by key; MPI_GROUP_EMPTY when there are none.
MPI_Group group_of_color(MPI_Comm comm, const std::vector<ColorAndKey>& all, int color) {
    std::vector<int> chosen;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (color != MPI_UNDEFINED && all[rank].color == color) chosen.push_back(static_cast<int>(rank));
    if (chosen.empty()) return constants.group_empty;
    std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
        return all[static_cast<std::size_t>(a)].key < all[static_cast<std::size_t>(b)].key;
    });
    MPI_Group whole, part;
    real.Comm_group(comm, &whole);
    real.Group_incl(whole, static_cast<int>(chosen.size()), chosen.data(), &part);
    real.Group_free(&whole);
    return part;
}

void free_group(MPI_Group group) {
    if (group != constants.group_empty) real.Group_free(&group);
}

/// MPI_Comm_split with colours and keys gathered under seal; the rest is MPI_Comm_create over the groups they
/// make.
int split_sealed(Communicator& parent, const char* constructor, int color, int key, MPI_Comm* newcomm) {
    const ColorAndKey mine{color, key};
    std::vector<ColorAndKey> all(static_cast<std::size_t>(parent.size));
    if (int code = run_collective(plan::Allgather(constructor, &mine, sizeof mine, constants.byte, all.data(),
                                                  sizeof mine, constants.byte, parent.handle));
        code != MPI_SUCCESS)
        return code;
    MPI_Group part = group_of_color(parent.handle, all, color);
    const int code = construct(constructor, parent.handle, newcomm,
                               [&] { return real.Comm_create(parent.handle, part, newcomm); });
    free_group(part);
    return code;
}

/// The same for an inter-communicator: each group learns the other's colours, and on the private twin the two
/// sides of a colour find each other.
int split_inter_sealed(Communicator& parent, const char* constructor, int color, int key, MPI_Comm* newcomm) {
    const std::vector<std::int32_t> people = parent.space->people();
    const ColorAndKey mine{color, key};
    std::vector<ColorAndKey> all(people.size());
    if (int code = run_collective(
            plan::Allgather_of_both(constructor, &mine, sizeof mine, all.data(), parent.handle));
        code != MPI_SUCCESS)
        return code;
    const MPI_Comm twin = parent.space->twin();
    auto side = [&](const std::vector<std::int32_t>& members) {
        std::vector<ColorAndKey> colors = all;
        for (std::size_t i = 0; i < people.size(); ++i)
            if (std::find(members.begin(), members.end(), people[i]) == members.end())
                colors[i].color = MPI_UNDEFINED;
        return group_of_color(twin, colors, color);
    };
    MPI_Group local = side(parent.members), remote = side(parent.remote_members);
    MPI_Comm part = constants.comm_null;
    int code = real.Comm_create(twin, local, &part);
    *newcomm = constants.comm_null;
    if (code == MPI_SUCCESS && part != constants.comm_null && remote != constants.group_empty) {
        MPI_Group whole;
        real.Comm_group(twin, &whole);
        int first = 0, leader = 0;
        real.Group_translate_ranks(remote, 1, &first, whole, &leader);
        real.Group_free(&whole);
        code = real.Intercomm_create(part, 0, twin, leader, 0, newcomm);
    }
    if (part != constants.comm_null) real.Comm_free(&part);
    free_group(local);
    free_group(remote);
    if (code != MPI_SUCCESS || *newcomm == constants.comm_null) return raise(&parent, code);
    MPI_Errhandler handler;
    real.Comm_get_errhandler(parent.handle, &handler);
    real.Comm_set_errhandler(*newcomm, handler);
    real.Errhandler_free(&handler);
    return learn(*newcomm, &parent, constructor);
}

/// MPI_Comm_idup of a communicator and of its private twin, under one request.
class Duplication final : public Operation {
  public:
    Duplication(Communicator& parent, const wire::ContextId& context, MPI_Comm* newcomm)
        : Operation(&parent), context_(context), newcomm_(newcomm) {}
    ~Duplication() override {
        leave_work_list(*this);
        drop_comm();
    }
    bool needs_progress() const override { return true; }
    Whereabouts whereabouts() const override { return {"MPI_Comm_idup", MPI_ANY_SOURCE, MPI_ANY_TAG}; }

    MPI_Request made = constants.request_null, twin_made = constants.request_null;
    MPI_Comm twin = constants.comm_null;

  private:
    void step() override {
        int both[2] = {0, 0};
        const int code = real.Test(&made, &both[0], MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return finish(code, true);
        if (const int twins = real.Test(&twin_made, &both[1], MPI_STATUS_IGNORE); twins != MPI_SUCCESS)
            return finish(twins);
        if (!both[0] || !both[1]) return;
        Communicator* adopted = adopt(*newcomm_, context_);
        if (adopted && twin != constants.comm_null) equip(*adopted, twin);
        finish();
    }
    wire::ContextId context_;
    MPI_Comm* newcomm_;
};

int idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request,
         const std::function<int(MPI_Request*)>& start) {
    Communicator* parent = find_communicator(comm);
    if (!parent)
        return comm == constants.comm_null
                   ? start(request)
                   : raise_route({Route::invalid, nullptr, MPI_ERR_COMM}, "MPI_Comm_idup");
    Guard guard;
    // Counted now, in the order of the calls, which all members share; the order of completion they need not.
    const wire::ContextId context =
        derive_context(*parent, "MPI_Comm_idup", parent->members, parent->remote_members);
    auto both = std::make_unique<Duplication>(*parent, context, newcomm);
    if (int code = start(&both->made); code != MPI_SUCCESS) return code;
    if (parent->space)
        if (int code = real.Comm_idup(parent->space->twin(), &both->twin, &both->twin_made);
            code != MPI_SUCCESS)
            return raise(parent, code);
    enlist(*both);
    *request = give_request(std::move(both));
    return MPI_SUCCESS;
}

int free_communicator(MPI_Comm* comm, int (*free)(MPI_Comm*)) {
    Communicator* known = find_communicator(*comm);
    if (!known) return free(comm);
    {
        Guard guard;
        hold(*known);
    }
    finish_collectives(*known);
    const int code = free(comm);
    if (code == MPI_SUCCESS) {
        unequip(*known);
        forget(*known);
    }
    Guard guard;
    release(*known);
    return code;
}

}  // namespace

int Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) {
    return construct("MPI_Comm_dup", comm, newcomm, [&] { return real.Comm_dup(comm, newcomm); });
}
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm) {
    return construct("MPI_Comm_dup_with_info", comm, newcomm,
                     [&] { return real.Comm_dup_with_info(comm, info, newcomm); });
}
int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
    return idup(comm, newcomm, request,
                [&](MPI_Request* started) { return real.Comm_idup(comm, newcomm, started); });
}
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request) {
    return idup(comm, newcomm, request,
                [&](MPI_Request* started) { return real.Comm_idup_with_info(comm, info, newcomm, started); });
}
int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm) {
    return construct("MPI_Comm_create", comm, newcomm,
                     [&] { return real.Comm_create(comm, group, newcomm); });
}

int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm) {
    Communicator* parent = find_communicator(comm);
    if (!parent)
        return comm == constants.comm_null
                   ? real.Comm_create_group(comm, group, tag, newcomm)
                   : raise_route({Route::invalid, nullptr, MPI_ERR_COMM}, "MPI_Comm_create_group");
    if (int code = meet(world_ranks(group), with_tag(parent->context, tag)); code != MPI_SUCCESS)
        return raise(parent, code);
    const int code = real.Comm_create_group(comm, group, tag, newcomm);
    if (code != MPI_SUCCESS) return code;
    return learn(*newcomm, parent, "MPI_Comm_create_group " + std::to_string(tag));
}

int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
    Communicator* parent = find_communicator(comm);
    if (!parent || !parent->crosses)
        return construct("MPI_Comm_split", comm, newcomm,
                         [&] { return real.Comm_split(comm, color, key, newcomm); });
    if (color < 0 && color != MPI_UNDEFINED) return raise(parent, MPI_ERR_ARG);
    return parent->inter ? split_inter_sealed(*parent, "MPI_Comm_split", color, key, newcomm)
                         : split_sealed(*parent, "MPI_Comm_split", color, key, newcomm);
}

int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
    Communicator* parent = find_communicator(comm);
    if (!parent || !parent->crosses)
        return construct("MPI_Comm_split_type", comm, newcomm,
                         [&] { return real.Comm_split_type(comm, split_type, key, info, newcomm); });
    const int node = state.world.node[static_cast<std::size_t>(state.world.rank)];
    if (parent->inter) {
        if (split_type != MPI_COMM_TYPE_SHARED && split_type != MPI_UNDEFINED)
            return refuse("MPI_Comm_split_type", comm);
        return split_inter_sealed(*parent, "MPI_Comm_split_type",
                                  split_type == MPI_UNDEFINED ? MPI_UNDEFINED : node, key, newcomm);
    }
    MPI_Comm on_node = constants.comm_null;
    if (int code = split_sealed(*parent, "MPI_Comm_split_type",
                                split_type == MPI_UNDEFINED ? MPI_UNDEFINED : node, key, &on_node);
        code != MPI_SUCCESS)
        return code;
    *newcomm = on_node;
    if (split_type == MPI_COMM_TYPE_SHARED || on_node == constants.comm_null) return MPI_SUCCESS;
    // Finer kinds (hardware resources) divide a node: there the library's own exchange stays on the node.
    const int code = construct("MPI_Comm_split_type finer", on_node, newcomm,
                               [&] { return real.Comm_split_type(on_node, split_type, key, info, newcomm); });
    Comm_free(&on_node);
    return code;
}

int Comm_free(MPI_Comm* comm) {
    return free_communicator(comm, real.Comm_free);
}
int Comm_disconnect(MPI_Comm* comm) {
    // Open MPI's waits for all members, inside the library (M5).
    if (Communicator* known = find_communicator(*comm))
        if (int code = meet(*known); code != MPI_SUCCESS) return raise(known, code);
    return free_communicator(comm, real.Comm_disconnect);
}

int Cart_create(MPI_Comm comm, int ndims, const int* dims, const int* periods, int reorder,
                MPI_Comm* newcomm) {
    return construct("MPI_Cart_create", comm, newcomm,
                     [&] { return real.Cart_create(comm, ndims, dims, periods, reorder, newcomm); });
}
int Cart_sub(MPI_Comm comm, const int* remain_dims, MPI_Comm* newcomm) {
    return construct("MPI_Cart_sub", comm, newcomm,
                     [&] { return real.Cart_sub(comm, remain_dims, newcomm); });
}
int Graph_create(MPI_Comm comm, int nnodes, const int* index, const int* edges, int reorder,
                 MPI_Comm* newcomm) {
    return construct("MPI_Graph_create", comm, newcomm,
                     [&] { return real.Graph_create(comm, nnodes, index, edges, reorder, newcomm); });
}
int Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int* sources, const int* sourceweights,
                               int outdegree, const int* destinations, const int* destweights, MPI_Info info,
                               int reorder, MPI_Comm* newcomm) {
    return construct("MPI_Dist_graph_create_adjacent", comm, newcomm, [&] {
        return real.Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree,
                                               destinations, destweights, info, reorder, newcomm);
    });
}

// The members of both groups derive the context from what all of them know: the two groups, the tag, and how
// often they did this.
int Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newcomm) {
    if (Communicator* parent = find_communicator(local_comm)) {
        // Each group, then the leaders, then each group again: after that all of both are here.
        if (int code = meet(*parent); code != MPI_SUCCESS) return raise(parent, code);
        Communicator* bridge = parent->rank == local_leader ? find_communicator(peer_comm) : nullptr;
        if (bridge && bridge->has_peer(remote_leader)) {
            std::vector<std::int32_t> leaders{state.world.rank,
                                              bridge->peers[static_cast<std::size_t>(remote_leader)].world};
            std::sort(leaders.begin(), leaders.end());
            if (int code = meet(leaders, with_tag(bridge->context, tag)); code != MPI_SUCCESS)
                return raise(parent, code);
        }
        if (int code = meet(*parent); code != MPI_SUCCESS) return raise(parent, code);
    }
    const int code = real.Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, newcomm);
    if (code != MPI_SUCCESS) return code;
    return learn(*newcomm, nullptr, "MPI_Intercomm_create " + std::to_string(tag));
}

int Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newcomm) {
    return construct("MPI_Intercomm_merge", intercomm, newcomm,
                     [&] { return real.Intercomm_merge(intercomm, high, newcomm); });
}

}  // namespace mpisec::shim
