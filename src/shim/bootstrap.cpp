#include "shim/bootstrap.hpp"

#include <algorithm>
#include <utility>

#include "keys/key_file.hpp"
#include "shim/bootstrap_card.hpp"
#include "shim/bootstrap_node.hpp"
#include "shim/bootstrap_tree.hpp"
#include "shim/constants.hpp"
#include "shim/errors.hpp"
#include "shim/real.hpp"

namespace mpisec::shim {
namespace {

/// The part of World that shared memory alone decides.
World local_world(int rank, int size, const std::vector<std::int32_t>& members) {
    World world;
    world.rank = rank;
    world.size = size;
    world.node.assign(size, 0);
    world.same_node.assign(size, 0);
    for (std::int32_t member : members) world.same_node[member] = 1;
    world.ranks_on_node = static_cast<int>(members.size());
    world.rank_on_node =
        static_cast<int>(std::lower_bound(members.begin(), members.end(), rank) - members.begin());
    world.crosses_nodes = world.ranks_on_node < size;
    return world;
}

MPI_Comm private_channel() {
    MPI_Comm channel;
    check_mpi(real.Comm_dup(constants.comm_world, &channel), "MPI_Comm_dup");
    // What goes wrong on the channel is said through the user's communicators.
    check_mpi(real.Comm_set_errhandler(channel, constants.errors_return), "MPI_Comm_set_errhandler");
    return channel;
}

keys::Secret long_term_key(const config::Settings& settings) {
    auto key = keys::read_key_file(settings.key_file);
    if (!key) abort_job(key.error().message);
    return std::move(*key);
}

}  // namespace

World establish(const config::Settings& settings) {
    int rank = 0, size = 1;
    check_mpi(real.Comm_rank(constants.comm_world, &rank), "MPI_Comm_rank");
    check_mpi(real.Comm_size(constants.comm_world, &size), "MPI_Comm_size");

    NodeMemory node(rank, size, settings);
    World world = local_world(rank, size, node.members());
    if (!world.crosses_nodes) return world;

    world.selection = node.select_aead();
    std::optional<keys::Secret> key;
    if (node.leads()) key = long_term_key(settings);

    world.channel = private_channel();
    const Card own = make_card(rank, node.members().front(), settings, world.selection.cipher);
    const std::vector<Card> cards = exchange_cards(own, size, world.channel, settings);
    require_agreement(cards, rank);
    world.node = node_map(cards, node.members(), rank);
    world.nodes = 1 + *std::max_element(world.node.begin(), world.node.end());

    std::optional<keys::Secret> master;
    if (key) master = agree_on_master(cards, world.node, rank, world.channel, *key, settings);
    world.master = node.share_master(std::move(master), digest(cards));
    return world;
}

}  // namespace mpisec::shim
