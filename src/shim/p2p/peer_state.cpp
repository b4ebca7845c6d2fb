#include "shim/p2p/peer_state.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shim/p2p/realms.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/state.hpp"

namespace mpisec::shim {
namespace {

// The keys of at most this many directions are kept ready; beyond that, those used longest ago are dropped, and derived again when needed.
constexpr std::size_t most_ready_keys = 4096;

// Address space is reserved for this many processes of further realms, so that what is kept of one never moves; and, in a session before
// MPI_Init, for this many of MPI_COMM_WORLD.
constexpr std::size_t room_for_others = 1 << 20, room_for_world = 1 << 16;

}  // namespace

/// The numbers in use: below `world` those of MPI_COMM_WORLD, from `others` to `end` all others. No number is used twice, so that what is
/// still noted about a process that is gone is not taken for another's.
struct PeerNumbers {
    std::size_t world = 0, others = 0, end = 0, room = 0;
};

namespace {

/// Calls `visit` with every state in the table.
template <class PairState, class Visit>
void for_each(PairState** by_number, Visit visit) {
    if (!by_number) return;
    const PeerNumbers& numbers = *process.peer_numbers;
    for (std::size_t i = 0; i < numbers.end; ++i) {
        if (i == numbers.world) i = numbers.others;
        if (i >= numbers.end) break;
        if (PairState* pair = state_in(by_number, static_cast<std::int32_t>(i))) visit(*pair);
    }
}

void drop(EpochKeys*& keys) {
    if (!keys) return;
    delete keys;
    keys = nullptr;
    --process.ready_keys;
}

/// Drops the older half in a full sweep over all pairs, but only after thousands of pairs came into use.
void drop_oldest() {
    std::uint64_t sum = 0, pairs = 0;
    auto each = [&](auto&& visit) {
        for_each(process.peer_send_states, [&](PeerSendState& out) {
            if (out.keys) visit(out.last_use, out.keys, out.keys);
        });
        for_each(process.peer_receive_states, [&](PeerReceiveState& in) {
            if (in.keys[0] || in.keys[1]) visit(in.last_use, in.keys[0], in.keys[1]);
        });
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

EpochKeys* derive(std::int32_t number, std::int32_t source, std::int32_t destination, std::uint32_t epoch) {
    const Realm& realm = realm_of(number);
    if (!realm.job_secret)
        abort_job(
            "a message was to be sealed or opened after its keys had been wiped (by MPI_Finalize, or with "
            "the "
            "last communicator of a session or of another world)");
    if (process.ready_keys >= most_ready_keys) drop_oldest();
    keys::PairSecret secret = keys::pair_secret(*realm.job_secret, source, destination, epoch);
    ++process.ready_keys;
    return new EpochKeys{epoch, aead::KeySet(state.world.selection, secret.aead.data()),
                         std::move(secret.message)};
}

template <class T>
T* set_aside(std::size_t room) {
    void* memory =
        mmap(nullptr, room * sizeof(T), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort_job("there is no address space for the state of the other ranks");
    return static_cast<T*>(memory);
}

/// Entries from `begin` to `end` may be used from now on. They are all zero, and take memory only when they are used.
template <class T>
void open(T* table, std::size_t begin, std::size_t end) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto from = reinterpret_cast<std::uintptr_t>(table + begin) / page * page;
    const auto to = reinterpret_cast<std::uintptr_t>(table + end);
    if (end > begin && mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE) != 0)
        abort_job("there is no memory for the state of the other ranks");
}

void open_all(std::size_t begin, std::size_t end) {
    open(process.peer_send_states, begin, end);
    open(process.peer_receive_states, begin, end);
    open(process.peer_facts, begin, end);
}

/// `world` is false in a session before MPI_Init, when MPI_COMM_WORLD has no processes yet.
void set_tables_aside(bool world) {
    PeerNumbers& numbers = *process.peer_numbers;
    numbers.others = world ? static_cast<std::size_t>(state.world.size) : room_for_world;
    numbers.end = numbers.others;
    numbers.room = numbers.others + room_for_others;
    process.peer_facts = set_aside<PeerFacts>(numbers.room);
    process.peer_receive_states = set_aside<PeerReceiveState*>(numbers.room);
    process.peer_send_states = set_aside<PeerSendState*>(numbers.room);
}

/// Two threads may come here for one pair: the pair keeps the state that one of them made.
template <class PairState>
PairState& install(PairState** by_number, std::unique_ptr<PairState> made) {
    PairState* there = nullptr;
    if (!std::atomic_ref(by_number[made->number])
             .compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
        return *there;
    return *made.release();
}

}  // namespace

void make_peer_states() {
    PeerNumbers& numbers = *process.peer_numbers;
    const auto size = static_cast<std::size_t>(state.world.size);
    if (numbers.world > 0) return;
    if (!process.peer_send_states) set_tables_aside(true);
    if (size > numbers.others)
        abort_job(
            "MPI_COMM_WORLD has more ranks than a program may have that makes a session before MPI_Init");
    open_all(0, size);
    numbers.world = size;
}

std::int32_t add_peers(int count) {
    if (!process.peer_send_states) set_tables_aside(false);
    PeerNumbers& numbers = *process.peer_numbers;
    const auto n = static_cast<std::size_t>(count);
    const std::size_t first = numbers.end;
    if (first + n > numbers.room)
        abort_job("this process has met more processes in other worlds and sessions than MPIsec can number");
    open_all(first, first + n);
    numbers.end += n;
    return static_cast<std::int32_t>(first);
}

PeerSendState& make_outgoing(std::int32_t number) {
    if (!process.peer_send_states)
        make_peer_states();  // what a program left behind ends after forget_peer_states()
    const Realm& realm = realm_of(number);
    auto pair = std::make_unique<PeerSendState>();
    pair->number = number;
    pair->source = realm.rank;
    pair->destination = number - realm.first;
    return install(process.peer_send_states, std::move(pair));
}

PeerReceiveState& make_incoming(std::int32_t number) {
    if (!process.peer_receive_states) make_peer_states();
    const Realm& realm = realm_of(number);
    auto pair = std::make_unique<PeerReceiveState>();
    pair->number = number;
    pair->source = number - realm.first;
    pair->destination = realm.rank;
    return install(process.peer_receive_states, std::move(pair));
}

void wipe_keys(const Realm& realm) {
    for (std::int32_t number = realm.first; number < realm.first + realm.size; ++number) {
        if (PeerSendState* out = state_in(process.peer_send_states, number)) drop(out->keys);
        if (PeerReceiveState* in = state_in(process.peer_receive_states, number)) {
            drop(in->keys[0]);
            drop(in->keys[1]);
            in->replay = {};
        }
    }
}

void renew_keys(PeerSendState& pair) {
    if (pair.next_counter.load(std::memory_order_relaxed) > wire::max_counter - state.settings.rekey_messages)
        abort_job("as many messages were sent to world rank " + std::to_string(pair.destination) +
                  " as the protocol can count (2^48)");
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
    if (!pair.keys) pair.keys = derive(pair.number, pair.source, pair.destination, pair.epoch);
}

EpochKeys* other_keys_of_epoch(PeerReceiveState& pair, std::uint32_t epoch) {
    if (pair.keys[1] && pair.keys[1]->epoch == epoch) return pair.keys[1];
    // A forged epoch costs one derivation and no more: a newer epoch is believed only once a message of it has opened.
    EpochKeys* keys = derive(pair.number, pair.source, pair.destination, epoch);
    drop(pair.keys[1]);
    pair.keys[1] = keys;
    return keys;
}

std::vector<MessageCount> message_counts() {
    std::vector<MessageCount> counts;
    for (std::int32_t peer = 0; peer < state.world.size; ++peer) {
        const PeerSendState* out = state_in(process.peer_send_states, peer);
        const PeerReceiveState* in = state_in(process.peer_receive_states, peer);
        if (out || in) counts.push_back({peer, out ? out->sent : 0, in ? in->opened : 0});
    }
    return counts;
}

std::size_t replay_runs() {
    std::size_t runs = 0;
    for_each(process.peer_receive_states, [&](const PeerReceiveState& in) { runs += in.replay.runs(); });
    return runs;
}

void forget_peer_states() {
    for_each(process.peer_send_states, [](PeerSendState& out) {
        drop(out.keys);
        delete &out;
    });
    for_each(process.peer_receive_states, [](PeerReceiveState& in) {
        drop(in.keys[0]);
        drop(in.keys[1]);
        delete &in;
    });
    PeerNumbers& numbers = *process.peer_numbers;
    if (process.peer_send_states) {
        munmap(process.peer_send_states, numbers.room * sizeof(PeerSendState*));
        munmap(process.peer_receive_states, numbers.room * sizeof(PeerReceiveState*));
        munmap(process.peer_facts, numbers.room * sizeof(PeerFacts));
    }
    process.peer_send_states = nullptr;
    process.peer_receive_states = nullptr;
    process.peer_facts = nullptr;
    numbers = {};
}

}  // namespace mpisec::shim
