#include "shim/p2p/verify.hpp"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "shim/p2p/communicator.hpp"
#include "shim/p2p/notices.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/stats.hpp"

namespace mpisec::shim {
namespace {

/// Removes entries that no message can contradict any more; called when many have gathered (programs that never reuse a tag).
void sweep_order(Communicator& comm) {
    for (auto entry = comm.order.begin(); entry != comm.order.end();) {
        const auto source = static_cast<std::size_t>(entry->first >> 32);
        entry->second.prune(comm.oldest_position(), incoming(comm.peers[source]).replay.base());
        entry = entry->second.empty() ? comm.order.erase(entry) : std::next(entry);
    }
    comm.order_sweep = 64 + 2 * comm.order.size();
}

/// Step 4. True when `counter` at `position` fits what was received before from this source with this tag.
bool in_order(Communicator& comm, int source, int tag, std::uint64_t position, std::uint64_t counter,
              const wire::ReplaySet& replay) {
    const bool nothing_older_waits = position < comm.oldest_position();
    if (comm.order.empty() && nothing_older_waits && counter + 1 == replay.base()) [[likely]]
        return true;
    auto entry = comm.order.try_emplace(wire::stream_of(source, tag)).first;
    if (!entry->second.record(position, counter)) return false;
    entry->second.prune(comm.oldest_position(), replay.base());
    if (entry->second.empty()) comm.order.erase(entry);
    if (comm.order.size() > comm.order_sweep) sweep_order(comm);
    return true;
}

using Awaited = Communicator::Awaited;

PeerReceiveState& pair_of(const Communicator& comm, int source) {
    return incoming(comm.peer(source));
}

/// Whether a message with this counter and this way back names one that may not have arrived.
bool names_a_gap(const wire::ReplaySet& replay, std::uint64_t counter, unsigned back) {
    return back != 0 && counter - back >= replay.base();
}

bool may_yet_come(const Communicator& comm, const Awaited& it) {
    return comm.oldest_position(it.source, it.tag) < it.position;
}

/// Whether the message was held back on the way. A message that was rejected may have been this one, and may claim any counter; one that
/// the sender cancelled is named in a notice, which may arrive a little later.
bool was_held_back(const Communicator& comm, const Awaited& it) {
    PeerReceiveState& pair = pair_of(comm, it.source);
    std::uint64_t& unaccounted = it.tag == MPI_ANY_TAG ? pair.unaccounted.any_tag : pair.unaccounted.same_tag;
    if (unaccounted > 0) {
        --unaccounted;
        return false;
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (!pair.replay.contains(it.counter) && std::chrono::steady_clock::now() < deadline) {
        hear_notices(pair.number);
        sched_yield();
    }
    return !pair.replay.contains(it.counter);
}

/// Whether the named message is missing. If an earlier receive can still get it, it is awaited instead.
bool names_a_missing_one(Communicator& comm, const Awaited& named) {
    if (pair_of(comm, named.source).replay.contains(named.counter)) return false;
    if (!may_yet_come(comm, named)) return was_held_back(comm, named);
    comm.awaited.push_back(named);
    return false;
}

/// One of the awaited messages that can no longer arrive. Looks at no more than one that still can: its turn comes again.
std::optional<Awaited> awaited_in_vain(Communicator& comm) {
    while (!comm.awaited.empty()) {
        const Awaited it = comm.awaited.front();
        const bool has_come = pair_of(comm, it.source).replay.contains(it.counter);
        if (!has_come && may_yet_come(comm, it)) {
            comm.awaited.splice(comm.awaited.end(), comm.awaited, comm.awaited.begin());
            return std::nullopt;
        }
        comm.awaited.pop_front();
        if (!has_come && was_held_back(comm, it)) return it;
    }
    return std::nullopt;
}

/// Step 5. Says what is missing before this message, or before one that was received earlier; empty when nothing is.
[[gnu::cold, gnu::noinline]] std::string missing_before(Communicator& comm, const ReceivedMessage& received,
                                                        const Match& match, const wire::NonceFields& nonce) {
    const wire::ReplaySet& replay = pair_of(comm, received.source).replay;
    const auto names_missing = [&](int tag, unsigned back) {
        return names_a_gap(replay, nonce.counter, back) &&
               names_a_missing_one(comm, {received.source, tag, nonce.counter - back, match.position});
    };
    if (names_missing(received.tag, nonce.back.same_tag))
        return "one with this tag that was sent before it is missing";
    if (match.any_tag && names_missing(MPI_ANY_TAG, nonce.back.any_tag))
        return "one that was sent before it is missing";
    if (const std::optional<Awaited> it = awaited_in_vain(comm))
        return "one that rank " + std::to_string(it->source) +
               " sent before a message received already is missing";
    return {};
}

/// Whether a probe for MPI_ANY_TAG showed this message; if one did, that is forgotten from here on.
[[gnu::cold, gnu::noinline]] bool was_shown_first(Communicator& comm, const ReceivedMessage& received,
                                                  std::uint64_t position) {
    const Communicator::ShownFirst& shown = *comm.shown_first;
    if (shown.source != received.source || shown.tag != received.tag || position < shown.position)
        return false;
    // The order in which receives are looked at can differ from the order in which MPI gave them their messages.
    if (comm.older_waits(shown.source, shown.tag, shown.position, position)) return false;
    comm.shown_first.reset();
    return true;
}

struct Opening {
    PeerReceiveState& pair;
    EpochKeys* keys;
    wire::NonceFields nonce;
};

bool open_small(ReceivedMessage& received, Communicator& comm, const Opening& opening,
                std::span<std::uint8_t> wire, std::span<std::uint8_t> to) {
    const std::size_t n = wire.size() - wire::small_overhead;
    const wire::AssociatedData ad = wire::associated_data(
        wire::Kind::small, comm.context, opening.pair.source, opening.pair.destination, received.tag, n);
    std::uint8_t* sealed = wire.data() + aead::nonce_bytes;
    received.total = n;
    StatsTimer timer(comm.traffic, Stats::open_small, n);
    return opening.keys->aead.open(n <= to.size() ? to.data() : sealed, sealed, n, wire.data(), ad.data(),
                                   ad.size());
}

bool open_header(ReceivedMessage& received, Communicator& comm, const Opening& opening,
                 std::span<std::uint8_t> wire) {
    const wire::AssociatedData ad =
        wire::associated_data(wire::Kind::large_header, comm.context, opening.pair.source,
                              opening.pair.destination, received.tag, wire.size());
    std::uint8_t header[wire::large_header_bytes];
    if (!opening.keys->aead.open(header, wire.data() + aead::nonce_bytes, sizeof header, wire.data(),
                                 ad.data(), ad.size()))
        return false;
    if (!wire::decode(header, comm.threshold, received.header) ||
        wire.size() != wire::large_first_wire_bytes(received.header.first_bytes))
        return false;
    received.total = received.header.total;
    keys::message_key(opening.keys->message_secret, opening.nonce.counter,
                      received.message_key.emplace().data());
    return true;
}

struct Delivered {
    ReceivedMessage& received;
    Communicator& comm;
    std::span<const std::uint8_t> wire;
    std::uint64_t position;
};

[[gnu::cold, gnu::noinline]] void reject(const Delivered& it, Violation violation,
                                         const char* detail = nullptr) {
    ReceivedMessage& received = it.received;
    if (it.comm.has_peer(received.source) && !it.comm.is_channel &&
        (violation == Violation::forged || violation == Violation::malformed))
        pair_of(it.comm, received.source).unaccounted.add();
    received.error = report_violation(violation, it.comm, received.source, received.tag, detail);
    received.total = 0;
    // A message that did not authenticate may have been the first part of a large one, whose sender waits for the rest to be received.
    const bool may_be_large = received.large || looks_large(it.comm, it.wire.size()) ||
                              it.wire.size() < wire::small_overhead ||
                              it.wire.size() > wire::small_wire_bytes(it.comm.threshold);
    if (may_be_large && (violation == Violation::forged || violation == Violation::malformed))
        tell_rejected(it.comm, {received.source, received.tag, it.position},
                      it.wire.size() < wire::small_overhead ? nullptr : it.wire.data());
}

/// Wipes a small message that was opened in place and is rejected after all. `to` may be null when it has no bytes.
void wipe_delivered(const ReceivedMessage& received, std::span<std::uint8_t> to) {
    if (received.total > 0 && received.total <= to.size()) std::memset(to.data(), 0, received.total);
}

}  // namespace

bool looks_large(const Communicator& comm, std::size_t wire_bytes) {
    return wire_bytes == wire::large_first_wire_bytes(comm.threshold) ||
           wire_bytes == wire::large_first_wire_bytes(comm.short_first);
}

std::size_t small_plaintext_bytes(std::size_t wire_bytes) {
    return wire_bytes > wire::small_overhead ? wire_bytes - wire::small_overhead : 0;
}

void verify(ReceivedMessage& received, Communicator& comm, std::span<std::uint8_t> wire,
            std::span<std::uint8_t> to, const Match& match) {
    const Delivered delivered{received, comm, wire, match.position};
    if (!comm.has_peer(received.source)) [[unlikely]]
        return reject(delivered, Violation::malformed, "and there is no such rank");
    const bool was_shown = comm.shown_first && was_shown_first(comm, received, match.position);
    wire::NonceFields nonce;
    if (wire.size() < wire::small_overhead || !wire::parse_nonce(wire.data(), nonce)) [[unlikely]]
        return reject(delivered, Violation::malformed);
    received.large = nonce.kind == wire::Kind::large_header;
    if (received.large && !looks_large(comm, wire.size())) [[unlikely]]
        return reject(delivered, Violation::malformed, "its length does not fit its kind");
    received.counter = nonce.counter;

    PeerReceiveState& pair = incoming(comm.peer(received.source));
    Opening opening{pair, keys_of_epoch(pair, nonce.epoch), nonce};
    const bool opened = received.large ? open_header(received, comm, opening, wire)
                                       : open_small(received, comm, opening, wire, to);
    if (!opened) [[unlikely]]
        return reject(delivered, Violation::forged);
    if (!pair.replay.insert(nonce.counter)) [[unlikely]] {
        if (!received.large) wipe_delivered(received, to);
        if (received.large) tell_misnamed(pair.number, nonce.counter);
        return reject(delivered, Violation::replayed);
    }
    confirm_epoch(pair, opening.keys);  // the next steps may hear notices of this pair, which need keys, too
    if (!in_order(comm, received.source, received.tag, match.position, nonce.counter, pair.replay))
        [[unlikely]] {
        if (!received.large) wipe_delivered(received, to);
        if (received.large) throw_away(pair.number, received.header);
        return reject(delivered, Violation::reordered);
    }
    const bool any_tag = match.any_tag || was_shown;
    if (names_a_gap(pair.replay, nonce.counter, nonce.back.same_tag) ||
        (any_tag && names_a_gap(pair.replay, nonce.counter, nonce.back.any_tag)) || !comm.awaited.empty())
        [[unlikely]]
        if (const std::string what = missing_before(comm, received, {match.position, any_tag}, nonce);
            !what.empty()) {
            if (!received.large) wipe_delivered(received, to);
            if (received.large) throw_away(pair.number, received.header);
            return reject(delivered, Violation::reordered, what.c_str());
        }
    ++pair.opened;
    if (pair.replay.runs() >= gaps_before_look && pair.opened % messages_between_looks == 0 &&
        !comm.is_channel) [[unlikely]]
        hear_notices(pair.number);
}

}  // namespace mpisec::shim
