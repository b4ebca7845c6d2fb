#include "shim/pair.hpp"

#include <memory>
#include <vector>

#include "shim/errors.hpp"
#include "shim/state.hpp"

namespace mpisec::shim {
namespace {

// Keys of at most this many directions are kept ready; beyond, the one used longest ago is dropped and
// derived again when needed.
constexpr std::size_t most_ready_keys = 4096;

// Never destroyed: operations that a program leaves behind when it calls exit() use them.
auto& outgoing_pairs = *new std::vector<std::unique_ptr<Outgoing>>;
auto& incoming_pairs = *new std::vector<std::unique_ptr<Incoming>>;
std::size_t ready_keys = 0;
std::uint64_t clock_of_use = 0;

void drop(EpochKeys*& keys) {
    if (!keys) return;
    delete keys;
    keys = nullptr;
    --ready_keys;
}

/// A full sweep over all pairs, but only after thousands of pairs came into use: drops the older half.
void drop_oldest() {
    std::uint64_t sum = 0, pairs = 0;
    auto each = [&](auto&& visit) {
        for (auto& pair : outgoing_pairs)
            if (pair && pair->keys) visit(pair->last_use, pair->keys, pair->keys);
        for (auto& pair : incoming_pairs)
            if (pair && (pair->keys[0] || pair->keys[1])) visit(pair->last_use, pair->keys[0], pair->keys[1]);
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
    if (ready_keys >= most_ready_keys) drop_oldest();
    keys::PairSecret secret = keys::pair_secret(*state.world.master, source, destination, epoch);
    ++ready_keys;
    return new EpochKeys{epoch, aead::KeySet(state.world.selection, secret.aead.data()),
                         std::move(secret.message)};
}

template <class Pair>
Pair& pair_of(std::vector<std::unique_ptr<Pair>>& pairs, std::int32_t world_rank, std::int32_t Pair::*peer) {
    if (pairs.empty()) pairs.resize(static_cast<std::size_t>(state.world.size));
    auto& pair = pairs[static_cast<std::size_t>(world_rank)];
    if (!pair) {
        pair = std::make_unique<Pair>();
        pair.get()->*peer = world_rank;
    }
    return *pair;
}

}  // namespace

Outgoing& outgoing(std::int32_t world_rank) {
    return pair_of(outgoing_pairs, world_rank, &Outgoing::destination);
}
Incoming& incoming(std::int32_t world_rank) {
    return pair_of(incoming_pairs, world_rank, &Incoming::source);
}

SendTicket take_ticket(Outgoing& pair, std::uint64_t bytes) {
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
    ++pair.epoch_messages;
    pair.epoch_bytes += bytes;
    pair.last_use = ++clock_of_use;
    return {pair.next_counter.fetch_add(1, std::memory_order_relaxed), pair.epoch, pair.keys};
}

EpochKeys* keys_of_epoch(Incoming& pair, std::uint32_t epoch) {
    pair.last_use = ++clock_of_use;
    if (pair.keys[0] && pair.keys[0]->epoch == epoch) return pair.keys[0];
    if (pair.keys[1] && pair.keys[1]->epoch == epoch) return pair.keys[1];
    // A forged epoch costs a derivation, no more: the newest epoch is only believed once a message of it has
    // opened.
    EpochKeys* keys = derive(pair.source, state.world.rank, epoch);
    drop(pair.keys[1]);
    pair.keys[1] = keys;
    return keys;
}

void confirm_epoch(Incoming& pair, std::uint32_t epoch) {
    const bool newest =
        pair.keys[1] && pair.keys[1]->epoch == epoch && (!pair.keys[0] || epoch > pair.keys[0]->epoch);
    if (newest) std::swap(pair.keys[0], pair.keys[1]);
}

std::uint64_t sent_to(std::int32_t world_rank) {
    if (outgoing_pairs.empty() || !outgoing_pairs[static_cast<std::size_t>(world_rank)]) return 0;
    return outgoing_pairs[static_cast<std::size_t>(world_rank)]->sent;
}

std::uint64_t opened_from(std::int32_t world_rank) {
    if (incoming_pairs.empty() || !incoming_pairs[static_cast<std::size_t>(world_rank)]) return 0;
    return incoming_pairs[static_cast<std::size_t>(world_rank)]->opened;
}

void forget_pairs() {
    for (auto& pair : outgoing_pairs)
        if (pair) drop(pair->keys);
    for (auto& pair : incoming_pairs)
        if (pair) {
            drop(pair->keys[0]);
            drop(pair->keys[1]);
        }
    outgoing_pairs.clear();
    incoming_pairs.clear();
}

}  // namespace mpisec::shim
