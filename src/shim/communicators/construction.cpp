#include "shim/communicators/construction.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "shim/collective/collectives.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/route.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

/// MPI must not be given a null pointer, not even for an empty array.
std::vector<int> room(int n) {
    return std::vector<int>(static_cast<std::size_t>(std::max(n, 1)));
}

void read_cart(MPI_Comm comm, Topology& topology) {
    int n = 0;
    real.Cartdim_get(comm, &n);
    topology.dims = topology.periods = topology.coordinates = room(n);
    real.Cart_get(comm, n, topology.dims.data(), topology.periods.data(), topology.coordinates.data());
    for (int& periodic : topology.periods) periodic = periodic != 0;
    for (auto* list : {&topology.dims, &topology.periods, &topology.coordinates})
        list->resize(static_cast<std::size_t>(n));
}

void read_graph(MPI_Comm comm, Topology& topology) {
    int nodes = 0, edges = 0;
    real.Graphdims_get(comm, &nodes, &edges);
    topology.index = room(nodes);
    topology.edges = room(edges);
    real.Graph_get(comm, nodes, edges, topology.index.data(), topology.edges.data());
    topology.index.resize(static_cast<std::size_t>(nodes));
    topology.edges.resize(static_cast<std::size_t>(edges));
}

void read_dist_graph(MPI_Comm comm, Topology& topology) {
    int in = 0, out = 0, weighted = 0;
    real.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    topology.sources = topology.source_weights = room(in);
    topology.destinations = topology.dest_weights = room(out);
    real.Dist_graph_neighbors(comm, in, topology.sources.data(), topology.source_weights.data(), out,
                              topology.destinations.data(), topology.dest_weights.data());
    topology.sources.resize(static_cast<std::size_t>(in));
    topology.destinations.resize(static_cast<std::size_t>(out));
    topology.source_weights.resize(weighted ? static_cast<std::size_t>(in) : 0);
    topology.dest_weights.resize(weighted ? static_cast<std::size_t>(out) : 0);
}

std::string different_ranks(Ranks expected, Ranks made, const char* group) {
    if (made.size() != expected.size())
        return std::string(group) + " has " + std::to_string(made.size()) + " ranks instead of " +
               std::to_string(expected.size());
    for (std::size_t i = 0; i < made.size(); ++i)
        if (made[i] != expected[i])
            return "rank " + std::to_string(i) + " of " + group + " is world rank " +
                   std::to_string(rank_in_realm(made[i])) + " instead of " +
                   std::to_string(rank_in_realm(expected[i]));
    return "";
}

/// Empty when `made` is what it must be.
std::string difference(const Membership& expected, MPI_Comm made) {
    if (made == constants.comm_null)
        return expected.none() ? "" : "this rank got MPI_COMM_NULL instead of a communicator";
    if (expected.none()) return "this rank got a communicator instead of MPI_COMM_NULL";
    const std::optional<Membership> is = read_membership(made, realm_of(expected.members));
    if (!is) return "processes of another job are in it";
    if (is->inter != expected.inter)
        return is->inter ? "it is an inter-communicator" : "it is an intra-communicator";
    std::string wrong = different_ranks(expected.members, is->members, "its group");
    if (wrong.empty())
        wrong = different_ranks(expected.remote_members, is->remote_members, "its remote group");
    if (!wrong.empty()) return wrong;
    // The rank under which the library sends, in case that differs from the group.
    int rank = -1, size = -1;
    real.Comm_rank(made, &rank);
    real.Comm_size(made, &size);
    const auto place =
        std::ranges::find(expected.members, own_number(expected.members)) - expected.members.begin();
    if (rank != place || size != static_cast<int>(expected.members.size()))
        return "this rank is " + std::to_string(rank) + " of " + std::to_string(size) + " in it instead of " +
               std::to_string(place) + " of " + std::to_string(expected.members.size());
    return "";
}

std::string difference_of_shadow(const Membership& expected, MPI_Comm shadow) {
    const std::string wrong = difference({members_of_both(expected), {}, false}, shadow);
    return wrong.empty() ? "" : "in the private one for its collectives, " + wrong;
}

}  // namespace

Topology read_topology(MPI_Comm comm) {
    Topology topology;
    real.Topo_test(comm, &topology.kind);
    if (topology.kind == MPI_CART) read_cart(comm, topology);
    if (topology.kind == MPI_GRAPH) read_graph(comm, topology);
    if (topology.kind == MPI_DIST_GRAPH) read_dist_graph(comm, topology);
    return topology;
}

Construction begin_construction(const char* procedure, Communicator& parent, Membership expected,
                                std::optional<Topology> topology, const std::string& constructor) {
    // A process that is not a member of the intra-communicator expects no communicator.
    if (std::ranges::find(expected.members, own_number(expected.members)) == expected.members.end() ||
        (expected.inter && expected.remote_members.empty()))
        expected = {};
    if (expected.inter) topology.reset();
    Construction construction{procedure, &parent, std::move(expected), std::move(topology)};
    if (!construction.expected.none())
        construction.context =
            derive_context(parent, constructor.empty() ? procedure : constructor, construction.expected);
    return construction;
}

namespace {

int raised(const Construction& construction, int code) {
    return construction.raises ? raise(construction.parent, code) : code;
}

}  // namespace

int reserve_blocks(Construction& construction) {
    Communicator& parent = *construction.parent;
    if (!construction.by_all || !parent.collective_context) return MPI_SUCCESS;
    if (!parent.collective_context->has_blocks()) {
        const Membership members = membership_of(parent);
        MPI_Comm shadow = constants.comm_null;
        WaitScope waiting(construction.procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (const int code = make_shadow_communicator(parent.handle, members, &shadow); code != MPI_SUCCESS)
            return raised(construction, code);
        if (const std::string wrong = difference_of_shadow(members, shadow); !wrong.empty())
            return raised(construction, report_wrong_communicator(construction.procedure, wrong.c_str()));
        Guard guard;
        parent.collective_context->give_blocks(all_blocks(shadow, members_of_both(members)));
    }
    Guard guard;
    construction.blocks = parent.collective_context->take_blocks();
    return MPI_SUCCESS;
}

int check_made(const Construction& construction, MPI_Comm made, MPI_Comm shadow) {
    const Membership& expected = construction.expected;
    std::string wrong = difference(expected, made);
    if (wrong.empty() && expected.none()) return MPI_SUCCESS;
    if (wrong.empty() && construction.topology && read_topology(made) != *construction.topology)
        wrong = "its topology is another";
    const bool crosses = crosses_nodes(expected);
    if (wrong.empty() && crosses && construction.blocks.none())
        wrong = difference_of_shadow(expected, shadow);
    if (!wrong.empty()) return report_wrong_communicator(construction.procedure, wrong.c_str());
    Communicator* known = adopt(made, expected, construction.context);
    known->of_session = construction.parent->of_session;
    if (crosses)
        equip(*known, construction.blocks.none() ? all_blocks(shadow, members_of_both(expected))
                                                 : construction.blocks);
    return MPI_SUCCESS;
}

int hand_out(const Construction& construction, MPI_Comm made, MPI_Comm* newcomm) {
    const Membership& expected = construction.expected;
    MPI_Comm shadow = constants.comm_null;
    // Also for a communicator that is not as it should be: the other members may find nothing wrong, and would wait.
    if (made != constants.comm_null && !expected.none() && construction.blocks.none() &&
        crosses_nodes(expected)) {
        int inter = 0;
        real.Comm_test_inter(made, &inter);
        if ((inter != 0) == expected.inter) {
            WaitScope waiting(construction.procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
            if (const int code = make_shadow_communicator(made, expected, &shadow); code != MPI_SUCCESS)
                return raised(construction, code);
        }
    }
    if (const int code = check_made(construction, made, shadow); code != MPI_SUCCESS)
        return raised(construction, code);
    if (made != constants.comm_null && !expected.none())
        inherit_error_handler(construction.parent->handle, made);
    *newcomm = made;
    return MPI_SUCCESS;
}

std::uint8_t class_to_tell(int code) {
    const int error_class = code == MPI_SUCCESS ? MPI_SUCCESS : class_of_error(code);
    const bool is_standard = error_class <= MPI_ERR_LASTCODE && std::in_range<std::uint8_t>(error_class);
    return static_cast<std::uint8_t>(is_standard ? error_class : MPI_ERR_OTHER);
}

int class_of_error(int code) {
    int error_class = MPI_SUCCESS;
    real.Error_class(code, &error_class);
    return error_class == MPI_SUCCESS ? MPI_ERR_OTHER : error_class;
}

AllLearned tell_learned(const char* procedure, Communicator& parent, int code) {
    // Ranks that made other calls do not come, nor do the dead.
    if (!parent.crosses || is_failure(code) || parent.collective_context->ended != MPI_SUCCESS)
        return {code, MPI_SUCCESS};
    const std::uint8_t mine = class_to_tell(code);
    std::vector<std::uint8_t> all(parent.collective_context->members().size());
    const int told =
        run_unraised(parent.inter ? plan::Allgather_of_both(procedure, &mine, 1, all.data(), parent.handle)
                                  : plan::Allgather(procedure, &mine, 1, constants.byte, all.data(), 1,
                                                    constants.byte, parent.handle));
    if (code != MPI_SUCCESS) return {code, told};
    if (is_failure(told)) return {told, told};
    const auto failed = std::ranges::find_if(all, [](std::uint8_t each) { return each != MPI_SUCCESS; });
    if (told != MPI_SUCCESS || failed == all.end()) return {MPI_SUCCESS, told};
    say(std::string(procedure) + " fails here because it failed on another rank, which says why.");
    return {*failed, told};
}

MPI_Group subgroup(MPI_Comm comm, const std::vector<int>& ranks) {
    if (ranks.empty()) return constants.group_empty;
    MPI_Group whole, part = constants.group_null;
    if (real.Comm_group(comm, &whole) != MPI_SUCCESS) return part;
    if (real.Group_incl(whole, static_cast<int>(ranks.size()), ranks.data(), &part) != MPI_SUCCESS)
        part = constants.group_null;
    real.Group_free(&whole);
    return part;
}

void free_group(MPI_Group group) {
    if (group != constants.group_empty && group != constants.group_null) real.Group_free(&group);
}

std::optional<int> bad_arguments(const char* procedure, const Communicator* parent, const void* newcomm) {
    if (!parent) return raise_route({Route::invalid, nullptr, MPI_ERR_COMM}, procedure);
    if (!newcomm) return raise(parent, MPI_ERR_ARG);
    return std::nullopt;
}

}  // namespace mpisec::shim
