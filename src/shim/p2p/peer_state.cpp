#include "shim/p2p/peer_state.hpp"

#include <memory>
#include <span>

#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

// Keys of at most this many directions are kept ready; beyond, the one used longest ago is dropped and
// derived again when needed.
constexpr std::size_t most_ready_keys = 4096;

std::span<PeerSendState> all_outgoing() {
    return {peer_send_states, peer_send_states ? static_cast<std::size_t>(state.world.size) : 0};
}
std::span<PeerReceiveState> all_incoming() {
    return {peer_receive_states, peer_receive_states ? static_cast<std::size_t>(state.world.size) : 0};
}

void drop(EpochKeys*& keys) {
    if (!keys) return;
    delete keys;
    keys = nullptr;
    --process.ready_keys;
}

/// A full sweep over all pairs, but only after thousands of pairs came into use: drops the older half.
void drop_oldest() {
    std::uint64_t sum = 0, pairs = 0;
    auto each = [&](auto&& visit) {
        for (PeerSendState& pair : all_outgoing())
            if (pair.keys) visit(pair.last_use, pair.keys, pair.keys);
        for (PeerReceiveState& pair : all_incoming())
            if (pair.keys[0] || pair.keys[1]) visit(pair.last_use, pair.keys[0], pair.keys[1]);
    };
    each([&](std::uint64_t last_use, EpochKeys*&, EpochKeys*&) {
        sum += last_use;
        ++pairs;
    });
    const std::uint64_t mean = pairs ? sum / pairs : 0;
    each([&](std::uint64_t last_use, EpochKeys*& first, EpochKeys*& second) {
        if (last_use > mean) return;
        drop(first);
        drop(second);
    });
}

EpochKeys* derive(std::int32_t source, std::int32_t destination, std::uint32_t epoch) {
    if (!state.world.job_secret)
        abort_job("a message was to be sealed after MPI_Finalize had wiped the keys");
    if (process.ready_keys >= most_ready_keys) drop_oldest();
    keys::PairSecret secret = keys::pair_secret(*state.world.job_secret, source, destination, epoch);
    ++process.ready_keys;
    return new EpochKeys{epoch, aead::KeySet(state.world.selection, secret.aead.data()),
                         std::move(secret.message)};
}

}  // namespace

void make_peer_states() {
    const auto size = static_cast<std::size_t>(state.world.size);
    auto out = std::make_unique<PeerSendState[]>(size);
    auto in = std::make_unique<PeerReceiveState[]>(size);
    for (std::size_t rank = 0; rank < size; ++rank)
        out[rank].destination = in[rank].source = static_cast<std::int32_t>(rank);
    peer_send_states = out.release();
    peer_receive_states = in.release();
}

void renew_keys(PeerSendState& pair) {
    if (pair.epoch_messages >= state.settings.rekey_messages ||
        pair.epoch_bytes >= state.settings.rekey_bytes) {
        if (pair.epoch == wire::max_epoch)
            abort_job("the keys for world rank " + std::to_string(pair.destination) +
                      " were renewed as often as the protocol allows; raise MPISEC_REKEY_MESSAGES or "
                      "MPISEC_REKEY_BYTES");
        ++pair.epoch;
        pair.epoch_messages = pair.epoch_bytes = 0;
        drop(pair.keys);
    }
    if (!pair.keys) pair.keys = derive(state.world.rank, pair.destination, pair.epoch);
}

EpochKeys* other_keys_of_epoch(PeerReceiveState& pair, std::uint32_t epoch) {
    if (pair.keys[1] && pair.keys[1]->epoch == epoch) return pair.keys[1];
    // A forged epoch costs a derivation, no more: the newest epoch is only believed once a message of it has
    // opened.
    EpochKeys* keys = derive(pair.source, state.world.rank, epoch);
    drop(pair.keys[1]);
    pair.keys[1] = keys;
    return keys;
}

std::uint64_t sent_to(std::int32_t world_rank) {
    return peer_send_states ? peer_send_states[world_rank].sent : 0;
}

std::uint64_t opened_from(std::int32_t world_rank) {
    return peer_receive_states ? peer_receive_states[world_rank].opened : 0;
}

void forget_peer_states() {
    for (PeerSendState& pair : all_outgoing()) drop(pair.keys);
    for (PeerReceiveState& pair : all_incoming()) {
        drop(pair.keys[0]);
        drop(pair.keys[1]);
    }
    delete[] std::exchange(peer_send_states, nullptr);
    delete[] std::exchange(peer_receive_states, nullptr);
}

}  // namespace mpisec::shim
