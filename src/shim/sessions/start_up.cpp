#include "shim/sessions/start_up.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>

#include "base/hex.hpp"
#include "config/calibration_file.hpp"
#include "keys/hkdf.hpp"
#include "keys/key_file.hpp"
#include "shim/collective/collective_choice.hpp"
#include "shim/collective/collective_context.hpp"
#include "shim/communicators/construction.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/watchdog.hpp"
#include "shim/sessions/life.hpp"
#include "shim/startup/cores.hpp"
#include "shim/startup/key_exchange.hpp"
#include "shim/startup/node_id.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* wrong_private =
    "A private communicator does not have the processes that it must have: something between the nodes "
    "changes the MPI library's messages.";

/// One crypto library for all realms of a process; a second one would have to have the same cipher anyway.
void choose_crypto() {
    const std::lock_guard lock(process.life);
    if (state.world.selection.library[0]) return;
    auto selection = aead::select(state.settings.aead, config::calibration_path(state.settings));
    if (!selection) abort_job(selection.error().message);
    state.world.selection = *selection;
}

/// Makes the channel while everything else makes progress: processes that must take part may need that first (M5).
MPI_Comm make_channel(MPI_Comm all) {
    MPI_Comm channel = constants.comm_null;
    MPI_Request made;
    check_mpi(real.Comm_idup(all, &channel, &made), "MPI_Comm_idup");
    complete_or_abort(&made, "the other processes to make a communicator", state.settings);
    check_mpi(real.Comm_set_errhandler(channel, constants.errors_return), "MPI_Comm_set_errhandler");
    return channel;
}

JobAgreement agree(const Realm& realm, const NodeCards& cards) {
    auto key = keys::read_key_file(state.settings.key_file);
    if (!key) abort_job(key.error().message);
    WaitScope waiting("the key exchange of new processes", MPI_ANY_SOURCE, MPI_ANY_TAG);
    return agree_on_job_secret(
        {cards, realm.rank, realm.size, realm.channel, *key, state.world.selection, state.settings});
}

std::vector<std::int32_t> everyone_in(const Realm& realm) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(realm.size));
    std::iota(all.begin(), all.end(), realm.first);
    return all;
}

/// Makes contexts of one realm differ from those of other realms, whose processes have the same ranks.
void name_realm(const Realm& realm, const NodeCards& cards) {
    keys::Sha256 hash;
    hash.update(keys::as_bytes("mpisec realm")).update(digest(cards));
    keys::Digest name;
    hash.finish(name.data());
    std::copy_n(name.begin(), no_parent(realm).context.size(), no_parent(realm).context.begin());
}

}  // namespace

std::string hidden(const std::string& kind, const std::string& name) {
    const keys::Digest digest = keys::sha256(keys::as_bytes("mpisec " + kind + " " + name));
    return "mpisec-" + hex(std::span(digest).first(16));
}

std::vector<Hello> meet_strangers(MPI_Comm all, const std::string& call, Place place) {
    int rank = 0, size = 1;
    check_mpi(real.Comm_rank(all, &rank), "MPI_Comm_rank");
    check_mpi(real.Comm_size(all, &size), "MPI_Comm_size");
    Hello own = make_hello(rank, state.settings, selection_mark());
    own.side = place.side;
    own.rank_on_side = place.rank;
    own.job_rank = place.job_rank;
    if (place.job_rank < 0) own.job = {};  // worlds that spawn or connect are jobs of their own
    own.purpose = purpose_mark(call + " " + std::to_string(size));
    std::vector<Hello> hellos =
        leaders_of(exchange_cards(own, size, all, Nodes::of_one_process, state.settings));
    require_agreement(hellos, own);
    return hellos;
}

bool are_processes(const std::vector<Hello>& hellos, std::uint32_t side, Ranks job_ranks) {
    return job_ranks.empty() || std::ranges::all_of(hellos, [&](const Hello& hello) {
               return hello.side != side || (hello.rank_on_side < job_ranks.size() &&
                                             hello.job_rank == job_ranks[hello.rank_on_side]);
           });
}

bool may_be_one_node(const std::vector<Hello>& hellos) {
    return !state.settings.same_node_sealed && launcher_is_known() &&
           std::ranges::all_of(hellos,
                               [&](const Hello& hello) { return hello.node_id == hellos[0].node_id; });
}

Realm& start_realm(MPI_Comm all, const std::vector<Hello>& hellos) {
    choose_crypto();
    const NodeCards cards = cards_of(hellos, Nodes::of_one_process);
    make_ready(all);
    auto realm = std::make_unique<Realm>();
    real.Comm_rank(all, &realm->rank);
    realm->size = static_cast<int>(hellos.size());
    name_process(realm->rank);
    realm->channel = make_channel(all);
    realm->seals_on_node = true;
    JobAgreement agreed = agree(*realm, cards);
    realm->job_secret = std::move(agreed.secret);
    realm->cipher_speed = agreed.cipher_speed;
    set_threshold(*realm, cards);
    check_mpi(real.Comm_group(realm->channel, &realm->group), "MPI_Comm_group");
    const Hello& own = hellos[static_cast<std::size_t>(realm->rank)];
    using Yield = config::Settings::Yield;
    if (state.settings.yield == Yield::on ||
        (state.settings.yield == Yield::automatic && oversubscribed(own, {own}, cards)))
        state.yield_while_waiting = true;
    close_gate();
    Guard guard;
    Realm& added = add_realm(std::move(realm), false);
    name_realm(added, cards);
    const Membership members{everyone_in(added)};
    if (read_membership(all, added) != members || read_membership(added.channel, added) != members)
        abort_job(wrong_private);
    adopt(added.channel, members, derive_context(no_parent(added), "channel", members));
    return added;
}

Realm& know_one_node(MPI_Group group) {
    for (Realm* realm : further_realms()) {
        int same = MPI_UNEQUAL;
        real.Group_compare(realm->group, group, &same);
        if (!realm->job_secret && same == MPI_IDENT) return *realm;
    }
    auto realm = std::make_unique<Realm>();
    real.Group_rank(group, &realm->rank);
    real.Group_size(group, &realm->size);
    real.Group_excl(group, 0, nullptr, &realm->group);
    Guard guard;
    return add_realm(std::move(realm), true);
}

int hand_out_first(Realm& realm, const char* procedure, const std::string& constructor, Membership expected,
                   MPI_Comm made) {
    Construction construction =
        begin_construction(procedure, no_parent(realm), std::move(expected), Topology{}, constructor);
    construction.by_all = false;
    MPI_Comm shadow = constants.comm_null;
    if (crosses_nodes(construction.expected)) {
        WaitScope waiting(procedure, MPI_ANY_SOURCE, MPI_ANY_TAG);
        if (const int code = make_shadow_communicator(made, construction.expected, &shadow);
            code != MPI_SUCCESS)
            return code;
    }
    Guard guard;
    const int code = check_made(construction, made, shadow);
    realm.handed_out = code == MPI_SUCCESS;
    return code;
}

}  // namespace mpisec::shim
