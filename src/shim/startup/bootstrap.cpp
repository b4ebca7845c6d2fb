#include "shim/startup/bootstrap.hpp"

#include <algorithm>
#include <utility>

#include "keys/key_file.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/cores.hpp"
#include "shim/startup/key_exchange.hpp"
#include "shim/startup/node_cards.hpp"
#include "shim/startup/node_proof.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

World make_world(int rank, const std::vector<std::int32_t>& node, Ranks members) {
    World world;
    world.rank = rank;
    world.size = static_cast<int>(node.size());
    world.topology = fabric::Topology(node);
    world.nodes = world.topology.nodes();
    world.own_node = world.topology.node(rank);
    world.ranks_on_node = static_cast<int>(members.size());
    world.rank_on_node =
        static_cast<int>(std::lower_bound(members.begin(), members.end(), rank) - members.begin());
    const bool consecutive = members.back() - members.front() + 1 == world.ranks_on_node;
    world.first_on_node = consecutive ? members.front() : -1;
    world.crosses_nodes = world.ranks_on_node < world.size;
    return world;
}

keys::Secret long_term_key(const config::Settings& settings) {
    auto key = keys::read_key_file(settings.key_file);
    if (!key) abort_job(key.error().message);
    return std::move(*key);
}

/// What the leader agrees on with the other nodes; the members have nothing yet.
std::optional<JobAgreement> agreement(const NodeProof& node, const NodeCards& cards, const World& world,
                                      const config::Settings& settings) {
    if (!node.leads()) return std::nullopt;
    const keys::Secret key = long_term_key(settings);
    return agree_on_job_secret(
        {cards, world.rank, world.size, constants.comm_world, key, world.selection, settings});
}

}  // namespace

World establish(const config::Settings& settings, const std::array<std::uint8_t, 16>& selection) {
    int rank = 0, size = 1;
    check_mpi(real.Comm_rank(constants.comm_world, &rank), "MPI_Comm_rank");
    check_mpi(real.Comm_size(constants.comm_world, &size), "MPI_Comm_size");

    const ErrorsReturned errors(constants.comm_world);
    // MPI makes the channel while the cards travel and the leaders agree: at start-up, with more ranks than
    // cores, each round is expensive.
    MPI_Comm channel;
    MPI_Request channel_made;
    check_mpi(real.Comm_idup(constants.comm_world, &channel, &channel_made), "MPI_Comm_idup");
    const Hello own = make_hello(rank, settings, selection);
    const NodeCards cards = exchange_cards(own, size, constants.comm_world, Nodes::by_id, settings);
    require_agreement(leaders_of(cards), own);
    NodeProof node(cards, own, settings);
    process.node_peers->know(node.processes(), rank);
    World world = make_world(rank, wire::node_map(cards, size), node.members());
    world.oversubscribed = oversubscribed(own, node.hellos(), cards);
    world.cpus = cpus_of_job(cards);
    if (world.crosses_nodes) {
        world.selection = node.select_aead();
        node.keep();
        JobAgreement agreed = node.share_agreement(agreement(node, cards, world, settings));
        world.job_secret = std::move(agreed.secret);
        world.cipher_speed = agreed.cipher_speed;
        set_threshold(world, cards);
    }
    // Errors on the channel are reported through the user's communicators.
    complete_or_abort(&channel_made, "the other ranks to make a communicator", settings);
    if (world.crosses_nodes) {
        world.channel = channel;
        check_mpi(real.Comm_set_errhandler(channel, constants.errors_return), "MPI_Comm_set_errhandler");
    } else {
        check_mpi(real.Comm_free(&channel), "MPI_Comm_free");
    }
    return world;
}

}  // namespace mpisec::shim
