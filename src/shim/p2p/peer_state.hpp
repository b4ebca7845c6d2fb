// Keys and counters between this process and one other rank (docs/protocol.md, "Nonces, counters, epochs";
// S3, S4, S6).
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "aead/aead.hpp"
#include "keys/schedule.hpp"
#include "shim/p2p/first_part_choice.hpp"
#include "shim/runtime/state.hpp"
#include "wire/replay.hpp"

namespace mpisec::shim {

/// What one epoch of one direction needs; derived when first used, and again after it was dropped from the
/// bounded cache.
struct EpochKeys {
    std::uint32_t epoch = 0;
    aead::KeySet aead;
    keys::Secret message_secret;
};

struct PeerSendState {
    std::int32_t number = 0;                     ///< of the peer (realms.hpp)
    std::int32_t source = 0, destination = 0;    ///< ranks in their realm: what travels
    std::atomic<std::uint64_t> next_counter{0};  ///< never reset, never reused: S4 holds over epochs too
    std::uint32_t epoch = 0;
    std::uint64_t epoch_messages = 0;
    std::uint64_t epoch_bytes = 0;
    std::uint64_t sent = 0;  ///< messages that MPI accepted; compared at Finalize (S8)
    std::uint32_t next_channel = 0;
    unsigned large_sends = 0;      ///< large messages whose segments are being sent
    unsigned sends_in_flight = 0;  ///< segments in flight, of those that their receivers have matched
    unsigned held_back = 0;        ///< how often the limit has held a segment back since one last left
    FirstPartChoice first_part;
    EpochKeys* keys = nullptr;
    std::uint64_t last_use = 0;
};

/// How many rejected messages have counters that nobody knows, so that as many may be missing. At most two messages name one of them as
/// their predecessor: the next one with its tag, and the next one of any tag.
struct Unaccounted {
    std::uint64_t same_tag = 0, any_tag = 0;
    void add() { ++same_tag, ++any_tag; }
    void found_one() {
        for (std::uint64_t* left : {&same_tag, &any_tag}) *left -= *left > 0;
    }
};

struct PeerReceiveState {
    std::int32_t number = 0;                   ///< of the peer (realms.hpp)
    std::int32_t source = 0, destination = 0;  ///< ranks in their realm: what travels
    wire::ReplaySet replay;
    std::uint64_t opened = 0;  ///< messages accepted; compared at Finalize (S8)
    Unaccounted unaccounted;
    unsigned receives_posted = 0;  ///< segments for which a receive is posted
    /// of the newest epoch, and of one other (messages received late)
    EpochKeys* keys[2] = {nullptr, nullptr};
    std::uint64_t last_use = 0;
};

/// Makes room for the state of every rank of MPI_COMM_WORLD, before the first call of the program is let through.
void make_peer_states();
/// Assigns numbers to `count` processes of a further realm, and returns the first of them.
std::int32_t add_peers(int count);
void wipe_keys(const Realm& realm);
/// A pair gets its state with its first message, only once (S4), and the state never moves. So a rank keeps nothing for the many ranks to
/// which it never speaks.
PeerSendState& make_outgoing(std::int32_t number);
PeerReceiveState& make_incoming(std::int32_t number);
void renew_keys(PeerSendState& pair);
EpochKeys* other_keys_of_epoch(PeerReceiveState& pair, std::uint32_t epoch);

// What every message needs is inline; what only the first message of a pair or of an epoch needs is not.
template <class PairState>
PairState* state_in(PairState** by_number, std::int32_t number) {
    return by_number ? std::atomic_ref(by_number[number]).load(std::memory_order_acquire) : nullptr;
}
inline PeerSendState& outgoing(std::int32_t number) {
    if (PeerSendState* pair = state_in(process.peer_send_states, number)) [[likely]]
        return *pair;
    return make_outgoing(number);
}
inline PeerReceiveState& incoming(std::int32_t number) {
    if (PeerReceiveState* pair = state_in(process.peer_receive_states, number)) [[likely]]
        return *pair;
    return make_incoming(number);
}

/// Takes the next counter for a message of `bytes` and the keys to seal it with, renewing them when the limit
/// is reached (S6). In a SealingScope (threads.hpp).
struct SendSequence {
    std::uint64_t counter;
    std::uint32_t epoch;
    EpochKeys* keys;
};
inline SendSequence take_sequence_number(PeerSendState& pair, std::uint64_t bytes) {
    if (!pair.keys || pair.epoch_messages >= state.settings.rekey_messages ||
        pair.epoch_bytes >= state.settings.rekey_bytes) [[unlikely]]
        renew_keys(pair);
    ++pair.epoch_messages;
    pair.epoch_bytes += bytes;
    pair.last_use = ++process.clock_of_use;
    return {pair.next_counter.fetch_add(1, std::memory_order_relaxed), pair.epoch, pair.keys};
}

/// Keys of the epoch that a nonce claims.
inline EpochKeys* keys_of_epoch(PeerReceiveState& pair, std::uint32_t epoch) {
    pair.last_use = ++process.clock_of_use;
    if (pair.keys[0] && pair.keys[0]->epoch == epoch) [[likely]]
        return pair.keys[0];
    return other_keys_of_epoch(pair, epoch);
}

/// Called when a message that these keys opened has been accepted: they become the ones kept first when their epoch is newer.
inline void confirm_epoch(PeerReceiveState& pair, const EpochKeys* keys) {
    if (keys != pair.keys[0] && (!pair.keys[0] || keys->epoch > pair.keys[0]->epoch)) [[unlikely]]
        std::swap(pair.keys[0], pair.keys[1]);
}

/// What this rank sent to and accepted from each rank of MPI_COMM_WORLD with which it communicated.
struct MessageCount {
    std::int32_t peer;  ///< world rank
    std::uint64_t sent, opened;
};
std::vector<MessageCount> message_counts();

/// Gaps in the sets of all senders, for MPISEC_STATS.
std::size_t replay_runs();

/// Wipes every pair's keys (S5).
void forget_peer_states();

}  // namespace mpisec::shim
